// What the run of one series needs (memory, seconds), from headers, tables and mask alone.
process EXPLAIN {
    tag "$meta.id"
    label 'process_single'
    label 'process_gpu'

    input:
    tuple val(meta), path(dwi, stageAs: 'dwi/*'), path(bval, stageAs: 'bval/*'), path(bvec, stageAs: 'bvec/*'), path(mask, stageAs: 'mask/*')

    output:
    tuple val(meta), path('explain.json'), emit: explain
    tuple val("${task.process}"), val('cingulum'), eval("cingulum --version | sed -n '1s/cingulum //p'"), topic: versions

    script:
    def args = task.ext.args ?: ''
    """
    cingulum track $dwi --bvals $bval --bvecs $bvec ${mask ? "--mask $mask" : ''} --explain --json \\
        --device $params.device --threads $task.cpus $args > explain.json
    """

    stub:
    """
    echo '{"memory": {"host_bytes": 1000000, "device_bytes": 0}, "core_seconds": {"prepare": 1, "track": 3}}' > explain.json
    """
}
