// The tiles of one slice to one image: mosaic grid, even light where it is asked for, placement and blending.
process SLICE {
    tag "z$meta.z"
    label 'process_medium'
    label 'process_gpu'

    input:
    tuple val(meta), path(tiles, stageAs: 'tiles/*')

    output:
    tuple val(meta), path("slice_z${meta.z}.ome.zarr"), emit: slice
    tuple val("${task.process}"), val('cingulum'), eval("cingulum --version | sed -n '1s/cingulum //p'"), topic: versions

    script:
    def common = "--device $meta.device --threads $task.cpus --quiet"
    def flatfield = params.flatfield
    """
    cingulum oct grid tiles --axial-step $params.axial_step --out mosaics $common ${task.ext.grid_args ?: ''}
    mosaic=\$(echo mosaics/mosaic_grid_3d_z*.ome.zarr)
    if $flatfield; then
        cingulum oct flatfield "\$mosaic" --out even.ome.zarr $common
        mosaic=even.ome.zarr
    fi
    cingulum oct stitch "\$mosaic" --out slice_z${meta.z}.ome.zarr $common ${task.ext.args ?: ''}
    """

    stub:
    """
    mkdir slice_z${meta.z}.ome.zarr
    """
}
