// One page about a tractogram.
process REPORT {
    tag "$meta.id"
    label 'process_single'

    input:
    tuple val(meta), path(tracks), path(sidecar)

    output:
    tuple val(meta), path("${meta.name}.html"), emit: page
    tuple val("${task.process}"), val('cingulum'), eval("cingulum --version | sed -n '1s/cingulum //p'"), topic: versions

    script:
    def args = task.ext.args ?: ''
    """
    memory-exit cingulum report $tracks --out ${meta.name}.html --threads $task.cpus $args
    """

    stub:
    """
    touch ${meta.name}.html
    """
}
