// A range of the seeds of one run.
process TRACK {
    tag "$meta.id $part of $meta.parts"
    label 'process_medium'
    label 'process_gpu'

    input:
    tuple val(meta), path(fit), val(part)

    output:
    tuple val(meta), path("${meta.id}.part${part}.${meta.format}"), path("${meta.id}.part${part}.${meta.format}.json"), emit: part
    tuple val("${task.process}"), val('cingulum'), eval("cingulum --version | sed -n '1s/cingulum //p'"), topic: versions

    script:
    def args = task.ext.args ?: ''
    """
    memory-exit gpu-slot $meta.device_bytes \\
        cingulum track --prepared $fit --part $part/$meta.parts --out ${meta.id}.part${part}.${meta.format} \\
        --device $params.device --threads $task.cpus $args
    """

    stub:
    """
    touch ${meta.id}.part${part}.${meta.format}
    echo '{}' > ${meta.id}.part${part}.${meta.format}.json
    """
}
