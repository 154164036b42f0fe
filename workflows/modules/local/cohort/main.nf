// One page about all subjects.
process COHORT {
    label 'process_single'

    input:
    val names
    path files, stageAs: 'in?/*'

    output:
    path 'out/cohort.html', emit: page
    tuple val("${task.process}"), val('cingulum'), eval("cingulum --version | sed -n '1s/cingulum //p'"), topic: versions

    script:
    def args = task.ext.args ?: ''
    def tree = names.withIndex().collect { name, i -> "place ${i + 1} '$name'" }.join('\n    ')
    """
    place() { mkdir -p "out/\$(dirname "\$2")" && ln -s "\$PWD"/in\$1/* "out/\$2"; }
    mkdir bids
    $tree
    memory-exit cingulum batch bids out group --threads $task.cpus $args
    """

    stub:
    """
    mkdir out
    touch out/cohort.html
    """
}
