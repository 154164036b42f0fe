#include "view/view_server.hpp"

namespace cingulum::view {

Result<std::unique_ptr<ViewServer>> ViewServer::listen(ViewHost&, const ViewServerOptions&) {
  return fail(ErrorKind::unavailable,
              "the viewer was left out of this build (CINGULUM_VIEW=OFF); build with CINGULUM_VIEW=ON");
}

}  // namespace cingulum::view
