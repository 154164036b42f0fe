// Some small subjects in one process. A subject that fails is listed and the others are done; main.nf fails the run at its
// end for it, and the next -resume does these subjects again.
process BATCH {
    tag "$meta.id"
    label 'process_medium'
    label 'process_gpu'

    input:
    // names: where each file lies in the BIDS tree. Files are staged one by one, so that a change of one is seen by
    // -resume and a cloud copies no more than these.
    tuple val(meta), val(names), path(files, stageAs: 'in?/*')

    output:
    tuple val(meta), path('out/sub-*/**'), optional: true, emit: tracks
    tuple path('out/dataset_description.json'), path('out/.bidsignore'), emit: dataset
    tuple val(meta), path('failures.tsv'), emit: failures
    tuple val("${task.process}"), val('cingulum'), eval("cingulum --version | sed -n '1s/cingulum //p'"), topic: versions

    script:
    def args = task.ext.args ?: ''
    def tree = names.withIndex().collect { name, i -> "place ${i + 1} '$name'" }.join('\n    ')
    """
    # Two folders down, where the description of the results does not take the tree for a neighbour of theirs.
    place() { mkdir -p "staged/bids/\$(dirname "\$2")" && ln -s "\$PWD"/in\$1/* "staged/bids/\$2"; }
    $tree

    status=0
    memory-exit gpu-slot $meta.device_bytes \\
        cingulum batch staged/bids out participant --failures failures.tsv --at-once $meta.at_once \\
        --device $params.device --threads $task.cpus $args || status=\$?
    # 1 with a list: those subjects failed and the others are done. Anything else is a failure of this task.
    if [ \$status -eq 1 ] && [ "\$(wc -l < failures.tsv)" -gt 1 ]; then status=0; fi
    if [ \$status -ne 0 ]; then exit \$status; fi
    """

    stub:
    """
    for name in ${meta.units.collect { unit -> "'${unit.output}'" }.join(' ')}; do
        mkdir -p "out/\$(dirname "\$name")"
        touch "out/\$name" "out/\${name%.trx}.json"
    done
    touch out/dataset_description.json out/.bidsignore
    printf 'unit\\tfile\\terror\\tcommand\\n' > failures.tsv
    """
}
