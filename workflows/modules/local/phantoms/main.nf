// A BIDS tree of phantoms, for the profile `test`: no download, and the same bytes everywhere.
process PHANTOMS {
    tag "$count subjects"
    label 'process_single'

    input:
    val count

    output:
    path 'bids', emit: bids
    tuple val("${task.process}"), val('cingulum'), eval("cingulum --version | sed -n '1s/cingulum //p'"), topic: versions

    script:
    """
    mkdir bids
    printf '{"Name": "phantoms", "BIDSVersion": "1.10.0", "DatasetType": "raw"}\\n' > bids/dataset_description.json
    for number in \$(seq -w 1 $count); do
        # The last one is larger than the others, so that both ways through the workflow are gone.
        size=\$([ \$((10#\$number)) -eq $count ] && echo 1.25 || echo 2.5)
        cingulum phantom --preset crossing60 --voxel-size \$size --seed \$((10#\$number)) --threads $task.cpus --quiet \\
            --out phantom\$number
        subject=sub-p\$number
        mkdir -p bids/\$subject/dwi
        for kind in nii.gz bval bvec; do
            cp phantom\$number/dwi.\$kind bids/\$subject/dwi/\${subject}_dwi.\$kind
        done
    done
    """

    stub:
    """
    mkdir -p bids/sub-p1/dwi
    printf '{"Name": "phantoms", "BIDSVersion": "1.10.0", "DatasetType": "raw"}\\n' > bids/dataset_description.json
    printf '' | gzip -n > bids/sub-p1/dwi/sub-p1_dwi.nii.gz
    touch bids/sub-p1/dwi/sub-p1_dwi.bval bids/sub-p1/dwi/sub-p1_dwi.bvec
    """
}
