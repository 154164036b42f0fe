// The last step: ends the run with a failure where subjects are missing. It runs in Nextflow itself, whatever the executor.
process COMPLETE {
    input:
    val missing
    val pages

    exec:
    if (missing) {
        error "${missing.size()} of the units failed: ${missing.collect { row -> row.unit }.join(', ')} (see pipeline_info/missing.tsv)"
    }
}
