// The fit of a series, made once and read by every part of its run.
process PREPARE {
    tag "$meta.id"
    label 'process_medium'
    label 'process_gpu'

    input:
    tuple val(meta), path(dwi, stageAs: 'dwi/*'), path(bval, stageAs: 'bval/*'), path(bvec, stageAs: 'bvec/*'), path(mask, stageAs: 'mask/*')

    output:
    tuple val(meta), path("${meta.id}.fit"), emit: fit
    tuple val("${task.process}"), val('cingulum'), eval("cingulum --version | sed -n '1s/cingulum //p'"), topic: versions

    script:
    def args = task.ext.args ?: ''
    """
    memory-exit gpu-slot $meta.device_bytes \\
        cingulum track $dwi --bvals $bval --bvecs $bvec ${mask ? "--mask $mask" : ''} --prepare ${meta.id}.fit \\
        --device $params.device --threads $task.cpus $args
    """

    stub:
    """
    touch ${meta.id}.fit
    """
}
