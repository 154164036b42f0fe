// `cingulum zarr bench`: regions to a device by every engine, beside the machine's own limit.
#include "cli/zarr_actions.hpp"

namespace cingulum {

Status run_zarr_bench(const ParsedArguments& /*arguments*/, VerbContext& /*context*/) {
  return fail(ErrorKind::unavailable, "cingulum zarr bench: not built yet");
}

}  // namespace cingulum
