// All slices to one volume: neighbours against each other, then the stack, each decision with its reason.
process STACK {
    tag "${slices.size()} slices"
    label 'process_medium'
    label 'process_gpu'

    input:
    val device
    path slices

    output:
    path 'volume.ome.zarr', emit: volume
    path 'decisions.csv', emit: decisions
    tuple val("${task.process}"), val('cingulum'), eval("cingulum --version | sed -n '1s/cingulum //p'"), topic: versions

    script:
    def common = "--device $device --threads $task.cpus --quiet"
    """
    cingulum oct register $slices --out transforms $common ${task.ext.register_args ?: ''}
    cingulum oct stack $slices --transforms-dir transforms --pyramid auto --decisions decisions.csv --out volume.ome.zarr \\
        $common ${task.ext.args ?: ''}
    """

    stub:
    """
    mkdir volume.ome.zarr
    touch decisions.csv
    """
}
