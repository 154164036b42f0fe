#!/usr/bin/env nextflow
// A cohort of diffusion series to tractograms, on a laptop, Slurm or a cloud, with the bytes of single runs of
// `cingulum track`. docs/cluster.md explains it; parameters stand in nextflow_schema.json.
//   large subjects:   PREPARE -> TRACK by ranges of seeds -> MERGE -> REPORT
//   small subjects:   BATCH of as many as make a task worth submitting
//   then:             COHORT, and COMPLETE, which fails the run where something is missing
nextflow.preview.topic = true  // versions

include { PHANTOMS } from './modules/local/phantoms/main'
include { INDEX    } from './modules/local/index/main'
include { EXPLAIN  } from './modules/local/explain/main'
include { PREPARE  } from './modules/local/prepare/main'
include { TRACK    } from './modules/local/track/main'
include { MERGE    } from './modules/local/merge/main'
include { REPORT   } from './modules/local/report/main'
include { BATCH    } from './modules/local/batch/main'
include { COHORT   } from './modules/local/cohort/main'
include { COMPLETE } from './modules/local/complete/main'
include { explainedUnit; byRanges; sheetUnits; indexedUnits; indexFailures; batches; rowsOf } from './units'
include { checkParameters } from './parameters'

// What the run is to make, what it has made and what failed by name, for the list at its end.
expected = Collections.synchronizedMap(new LinkedHashMap())
finished = Collections.synchronizedSet(new HashSet())
failures = Collections.synchronizedList(new ArrayList())

def information() { file("${params.outdir}/pipeline_info") }

// How often each unit failed in earlier runs into this folder.
def earlierFailures() {
    def table = information().resolve('failed_before.tsv')
    table.exists() ? table.splitCsv(header: true, sep: '\t').collectEntries { row -> [row.unit, row.times as int] } : [:]
}

// The results are a dataset of derivatives whatever made them: its description where no batch wrote one, and what validators
// of BIDS are not to look at.
def describeDataset(version) {
    def outdir = file(params.outdir)
    def description = outdir.resolve('dataset_description.json')
    if (!description.exists()) {
        description.text = groovy.json.JsonOutput.prettyPrint(groovy.json.JsonOutput.toJson(
            [Name: 'Tractograms by Cingulum', BIDSVersion: '1.9.0', DatasetType: 'derivative',
             GeneratedBy: [[Name: 'Cingulum', Version: version]]])) + '\n'
    }
    def ignored = outdir.resolve('.bidsignore')
    def lines = ignored.exists() ? ignored.readLines() : []
    def wanted = ['*_tractogram.*', 'cohort.html', 'pipeline_info'] - lines
    if (wanted) ignored.text = (lines + wanted).join('\n') + '\n'
}

workflow {
    checkParameters(params, file("$projectDir/nextflow_schema.json"))
    if ([params.bids, params.input, params.phantoms].count { source -> source } != 1) {
        error "give one of --bids FOLDER and --input SHEET.csv (or -profile test)"
    }

    // --- units: [meta, names in the tree, files] --------------------------------------------------------------------
    if (params.input) {
        rows = sheetUnits(file(params.input, checkIfExists: true))
        rows.each { row -> expected[row[0].id] = true }
        EXPLAIN(Channel.fromList(rows))
        large = Channel.fromList(rows).map { row -> [row[0].id, row] }
            .join(EXPLAIN.out.explain.map { meta, json -> [meta.id, json] })
            .map { id, row, json -> explainedUnit(row, json) }
        small = Channel.empty()
    } else {
        if (params.phantoms) PHANTOMS(params.phantoms)
        trees = params.phantoms ? PHANTOMS.out.bids : Channel.fromPath(params.bids, type: 'dir', checkIfExists: true)
        INDEX(trees)
        units = trees.combine(INDEX.out.units).flatMap { bids, json ->
            failures.addAll(indexFailures(json))
            def found = indexedUnits(bids, json)
            found.each { unit -> expected[unit[0].id] = true }
            indexFailures(json).each { row -> expected[row.unit] = true }
            found
        }
        kinds = units.branch { unit ->
            large: byRanges(unit[0])
            small: true
        }
        large = kinds.large.map { meta, names, files -> [meta, names, [files[0], files[1], files[2], files[3] ?: []]] }
        // The tree's own description goes with each batch.
        small = kinds.small.toSortedList { a, b -> a[0].id <=> b[0].id }.map { found -> [found] }.combine(trees).flatMap { found, bids ->
            def tree = ['dataset_description.json'].collect { name -> [name, bids.resolve(name)] }.findAll { pair -> pair[1].exists() }
            batches(found, tree, earlierFailures())
        }
    }

    // --- large ones: parts of a run, and the file of the whole --------------------------------------------------------
    PREPARE(large.map { meta, names, files -> [meta, files[0], files[1], files[2], files[3]] })
    TRACK(PREPARE.out.fit.flatMap { meta, fit -> (1..meta.parts).collect { part -> [meta, fit, part] } })
    MERGE(TRACK.out.part
        .map { meta, part, sidecar -> [groupKey(meta, meta.parts), part, sidecar] }
        .groupTuple()
        .map { key, parts, sidecars -> [key.target, parts.sort { a, b -> a.name <=> b.name }, sidecars.sort { a, b -> a.name <=> b.name }] })
    REPORT(MERGE.out.tracks)

    // --- small ones ---------------------------------------------------------------------------------------------------
    BATCH(small)

    // --- all ----------------------------------------------------------------------------------------------------------
    MERGE.out.tracks.subscribe { meta, tracks, sidecar -> finished << meta.id }
    failed = BATCH.out.failures.flatMap { meta, table ->
        def rows = rowsOf(table)
        def names = rows.collect { row -> row.unit }
        finished.addAll(meta.units.collect { unit -> unit.id } - names)
        failures.addAll(rows)
        rows
    }
    published = BATCH.out.tracks.flatMap { meta, files -> files.collect { each -> [each.toString().replaceFirst(/^.*?\/out\//, ''), each] } }
        .mix(MERGE.out.tracks.flatMap { meta, tracks, sidecar -> [tracks, sidecar].collect { each -> ["${meta.folder}/${each.name}" as String, each] } })
        .toSortedList { a, b -> a[0] <=> b[0] }
    if (params.cohort) {
        filled = published.filter { rows -> rows }
        COHORT(filled.map { rows -> rows.collect { row -> row[0] } }, filled.map { rows -> rows.collect { row -> row[1] } })
    }
    pages = REPORT.out.page.map { meta, page -> page }.mix(params.cohort ? COHORT.out.page : Channel.empty()).collect().ifEmpty([])
    indexed = params.input ? Channel.empty() : INDEX.out.units.flatMap { json -> indexFailures(json) }
    COMPLETE(failed.mix(indexed).collect().ifEmpty([]), pages)

    channel.topic('versions').unique()
        .map { process, tool, version -> "\"${process.tokenize(':').last()}\":\n    $tool: $version\n" }
        .collectFile(name: 'versions.yml', storeDir: "${params.outdir}/pipeline_info", sort: true)
}

// Whatever happened: what is missing stands in a table, and units that failed are counted, so that -resume does them again.
workflow.onComplete {
    if (!expected || workflow.stubRun) return
    def rows = failures.unique { row -> row.unit } +
        (expected.keySet() - finished - failures.collect { row -> row.unit }).collect { unit -> [unit: unit, file: '', error: 'not finished'] }
    information().mkdirs()
    information().resolve('missing.tsv').text = (['unit\tfile\terror'] +
        rows.collect { row -> [row.unit, row.file, row.error.replaceAll(/\s+/, ' ')].join('\t') }).join('\n') + '\n'
    if (failures) {
        def times = earlierFailures()
        failures.unique { row -> row.unit }.each { row -> times[row.unit] = times.getOrDefault(row.unit, 0) + 1 }
        information().resolve('failed_before.tsv').text =
            (['unit\ttimes'] + times.collect { unit, count -> "$unit\t$count" }).join('\n') + '\n'
    }
    describeDataset(workflow.manifest.version)
    log.info "${finished.size()} of ${expected.size()} units are in ${params.outdir}"
    if (rows) log.error "missing:\n" + rows.collect { row -> "  ${row.unit}: ${row.error}" }.join('\n')
}
