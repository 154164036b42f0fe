#!/usr/bin/env nextflow
// Raw tiles of serial OCT to one volume: a task for each slice and one stack. A slice that is lost ends the run with a
// failure, since the stack is made of all of them or not at all. docs/cluster.md explains it.
nextflow.preview.topic = true  // versions

include { TILES } from './modules/local/tiles/main'
include { SLICE } from './modules/local/slice/main'
include { STACK } from './modules/local/stack/main'
include { checkParameters } from '../parameters'

// The folders tile_x##_y##_z## of each slice, by the number that they carry.
def slicesOf(folder, device) {
    def tiles = folder.listFiles().findAll { tile -> tile.name ==~ /tile_x\d+_y\d+_z\d+/ }
    if (!tiles) error "$folder: no folders tile_x##_y##_z##"
    tiles.groupBy { tile -> tile.name.replaceFirst(/.*_z/, '') }.sort()
        .collect { z, found -> [[z: z, device: device], found.sort { a, b -> a.name <=> b.name }] }
}

workflow {
    checkParameters(params, file("$projectDir/nextflow_schema.json"))
    if (!params.tiles && !params.simulate) error "give --tiles FOLDER (or -profile test)"
    def device = params.use_gpu ? 'auto' : 'cpu'
    if (params.simulate) TILES()
    folders = params.simulate ? TILES.out.tiles : Channel.fromPath(params.tiles, type: 'dir', checkIfExists: true)
    SLICE(folders.flatMap { folder -> slicesOf(folder, device) })
    STACK(device, SLICE.out.slice.toSortedList { a, b -> a[0].z <=> b[0].z }.map { found -> found.collect { each -> each[1] } })

    channel.topic('versions').unique()
        .map { process, tool, version -> "\"${process.tokenize(':').last()}\":\n    $tool: $version\n" }
        .collectFile(name: 'versions.yml', storeDir: "${params.outdir}/pipeline_info", sort: true)
}
