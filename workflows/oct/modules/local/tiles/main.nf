// Raw tiles of a sample that is known, for the profile `test`.
process TILES {
    label 'process_single'

    output:
    path 'tiles', emit: tiles
    tuple val("${task.process}"), val('cingulum'), eval("cingulum --version | sed -n '1s/cingulum //p'"), topic: versions

    script:
    """
    cingulum oct simulate --grid 2,2 --tile 26,64,64 --overlap 0.25 --surface 2 --curvature 0 --tilt 0,0 --depth-jitter 0 --slices 3 \\
        --interval 10 --slice-shift 2 --motor-jitter 0.5 --seed 5 --threads $task.cpus --out tiles
    """

    stub:
    """
    for z in 00 01; do mkdir -p tiles/tile_x00_y00_z\$z; touch tiles/tile_x00_y00_z\$z/info.txt; done
    """
}
