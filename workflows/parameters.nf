// Parameters against nextflow_schema.json, before any work. Plugins that do this need the network; this knows the words
// that our schema uses.
import groovy.json.JsonSlurper

def checkParameters(given, schemaFile) {
    def known = new JsonSlurper().parse(schemaFile).get('$defs').values().collectEntries { group -> group.properties }
    def wrong = []
    given.each { name, value ->
        // Nextflow keeps --some-name as someName, too.
        if (name.contains('-')) return
        def rule = known[name]
        if (rule == null) {
            if (!known.containsKey(name.replaceAll(/([A-Z])/) { all -> '_' + all[1].toLowerCase() })) wrong << "--$name is not known"
            return
        }
        if (value == null) return
        def fits = [string: value instanceof CharSequence, boolean: value instanceof Boolean, integer: value instanceof Integer || value instanceof Long,
                    number: value instanceof Number][rule.type]
        if (!fits) wrong << "--$name $value: ${rule.type == 'integer' ? 'a whole number' : 'a ' + rule.type} is wanted"
        else if (rule.enum && !(value.toString() in rule.enum)) wrong << "--$name $value: one of ${rule.enum.join(', ')} is wanted"
        else if (rule.minimum != null && value < rule.minimum) wrong << "--$name $value: at least ${rule.minimum} is wanted"
    }
    if (wrong) error "parameters: ${wrong.join('; ')}"
}
