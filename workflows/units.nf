// Units are the series of subjects. What they are, what each needs, and how they are cut into tasks.
import groovy.json.JsonSlurper

// The seconds that a task of `cpus` threads takes for so many seconds of one core; a GPU counts as params.device_cores.
def taskSeconds(coreSeconds) {
    coreSeconds / (params.use_gpu ? params.device_cores : params.cpus)
}

// meta of a unit. `folder` and `name` are those of its output, below params.outdir.
def unitMeta(id, subject, output, explain) {
    def file = new File(output)
    def seconds = taskSeconds(explain.core_seconds.prepare + explain.core_seconds.track)
    [id: id, subject: subject, output: output, folder: file.parent ?: '', name: file.name.replaceFirst(/\.[a-z]+$/, ''), format: params.format,
     host_bytes: explain.memory.host_bytes as long, device_bytes: explain.memory.device_bytes as long,
     seconds: seconds, parts: partsOf(explain)]
}

// As many ranges of seeds as leave each task params.task_seconds to do.
def partsOf(explain) {
    if (params.parts > 0) return params.parts
    def parts = Math.floor(taskSeconds(explain.core_seconds.track) / params.task_seconds) as int
    Math.max(1, Math.min(params.max_parts as int, parts))
}

// Whether a unit's run is cut into ranges, or goes with others into one task.
def byRanges(meta) {
    params.mode == 'ranges' || (params.mode == 'auto' && meta.seconds >= 2 * params.task_seconds)
}

// One row of a sheet: subject, session, dwi, bval, bvec, mask. Paths are taken from where the sheet lies.
def sheetUnit(row, sheet) {
    if (!row.subject || !row.dwi) error "$sheet: each row needs a subject and a dwi: $row"
    for (label in [row.subject, row.session]) {
        if (label && !(label ==~ /[A-Za-z0-9]+/)) error "$sheet: '$label' is no label: letters and digits alone"
    }
    def beside = { name -> file(name.startsWith('/') || name.contains('://') ? name : "${sheet.parent}/$name", checkIfExists: true) }
    def stem = row.dwi.replaceFirst(/\.nii(\.gz)?$/, '')
    def session = row.session ? "_ses-${row.session}" : ''
    def id = "sub-${row.subject}$session"
    def folder = "sub-${row.subject}/" + (row.session ? "ses-${row.session}/" : '') + 'dwi'
    [[id: id, subject: row.subject, output: "$folder/${id}_tract-wholebrain_tractogram.${params.format}"],
     beside(row.dwi), beside(row.bval ?: "${stem}.bval"), beside(row.bvec ?: "${stem}.bvec"), row.mask ? beside(row.mask) : []]
}

// A row whose needs EXPLAIN has found: [meta, names, files] as units of a tree are.
def explainedUnit(row, json) {
    def (meta, dwi, bval, bvec, mask) = row
    [unitMeta(meta.id, meta.subject, meta.output, new JsonSlurper().parse(json)), [], [dwi, bval, bvec, mask]]
}

// All rows of a sheet; one that is named twice is an error.
def sheetUnits(sheet) {
    def units = sheet.splitCsv(header: true, strip: true).collect { row -> sheetUnit(row, sheet) }
    def twice = units.countBy { unit -> unit[0].id }.findAll { id, count -> count > 1 }.keySet()
    if (twice) error "$sheet: named twice: ${twice.join(', ')}"
    if (!units) error "$sheet: no rows"
    units
}

// The units that `cingulum batch --explain` found: [meta, names in the tree, files].
def indexedUnits(bids, json) {
    def index = new JsonSlurper().parse(json)
    index.units.collect { unit ->
        def names = [unit.dwi, unit.bval, unit.bvec, unit.mask].findAll { name -> name }
        [unitMeta(unit.unit, unit.subject, unit.output, unit.explain), names, names.collect { name -> bids.resolve(name) }]
    }
}

// What INDEX could not take: rows of missing.tsv.
def indexFailures(json) {
    new JsonSlurper().parse(json).failures.collect { row -> [unit: row.unit, file: row.file ?: '', error: row.error] }
}

// Series that a batch has under way: the next is read and the last is written while one is tracked.
def atOnce() {
    params.cpus > 1 ? 3 : 1
}

// Subjects in tasks of params.task_seconds at least: [meta, names, files] each, in the order of the index. `failed` says
// how often a unit failed in earlier runs: as a part of meta it makes -resume repeat the task and no other.
def batches(units, tree, failed) {
    def groups = []
    def group = [:]
    def seconds = 0
    units.groupBy { unit -> unit[0].subject }.each { subject, series ->
        group[subject] = series
        seconds += series.sum { unit -> unit[0].seconds }
        if (params.batch_size > 0 ? group.size() >= params.batch_size : seconds >= params.task_seconds) {
            groups << group
            group = [:]
            seconds = 0
        }
    }
    if (group) groups << group
    groups.collect { subjects ->
        def series = subjects.values().sum()
        def pairs = series.collectMany { unit -> [unit[1], unit[2]].transpose() }.unique { pair -> pair[0] } + tree
        def labels = subjects.keySet() as List
        [[id: labels.size() > 1 ? "${labels[0]} to ${labels[-1]}" as String : labels[0],
          units: series.collect { unit -> [id: unit[0].id, output: unit[0].output] },
          failed_before: series.sum { unit -> failed.getOrDefault(unit[0].id, 0) },
          at_once: atOnce(),
          host_bytes: series.collect { unit -> unit[0].host_bytes }.sort().reverse().take(atOnce()).sum(),
          device_bytes: series.collect { unit -> unit[0].device_bytes }.max(),
          seconds: series.sum { unit -> unit[0].seconds }],
         pairs.collect { pair -> pair[0] }, pairs.collect { pair -> pair[1] }]
    }
}

// Rows of a table with a header, as `batch` writes failures.tsv.
def rowsOf(table) {
    table.splitCsv(header: true, sep: '\t').collect { row -> [unit: row.unit, file: row.file ?: '', error: row.error ?: ''] }
}
