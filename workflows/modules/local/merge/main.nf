// The file of the undivided run, byte for byte; parts that do not belong together are refused. Its name ends in _tractogram,
// so that its sidecar is BIDS's: NAME.json.
process MERGE {
    tag "$meta.id"
    label 'process_single'

    input:
    tuple val(meta), path(parts), path(sidecars)

    output:
    tuple val(meta), path("${meta.name}.${meta.format}"), path("${meta.name}.json"), emit: tracks
    tuple val("${task.process}"), val('cingulum'), eval("cingulum --version | sed -n '1s/cingulum //p'"), topic: versions

    script:
    def args = task.ext.args ?: ''
    """
    memory-exit cingulum merge $parts --out ${meta.name}.${meta.format} --threads $task.cpus $args
    """

    stub:
    """
    touch ${meta.name}.${meta.format}
    echo '{}' > ${meta.name}.json
    """
}
