// What is in a BIDS tree, and what each unit of it (a series of a subject) needs: one pass over names and headers.
process INDEX {
    tag "$bids"
    label 'process_single'
    label 'process_gpu'
    // The tree may have grown since: it is asked in every run, and the tasks that follow are cached by their own files.
    cache false

    input:
    path bids

    output:
    path 'units.json', emit: units
    tuple val("${task.process}"), val('cingulum'), eval("cingulum --version | sed -n '1s/cingulum //p'"), topic: versions

    script:
    def args = task.ext.args ?: ''
    """
    cingulum batch $bids none participant --explain --json --device $params.device --threads $task.cpus $args > units.json
    """

    stub:
    """
    cat > units.json <<'JSON'
    {"layout": 1, "units": [{"unit": "sub-p1", "subject": "p1", "session": "", "dwi": "sub-p1/dwi/sub-p1_dwi.nii.gz",
      "bval": "sub-p1/dwi/sub-p1_dwi.bval", "bvec": "sub-p1/dwi/sub-p1_dwi.bvec", "mask": null,
      "output": "sub-p1/dwi/sub-p1_tract-wholebrain_track-ptt_tractogram.trx",
      "explain": {"memory": {"host_bytes": 1000000, "device_bytes": 0}, "core_seconds": {"prepare": 1, "track": 3}}}],
     "failures": []}
    JSON
    """
}
