// Stands in for the models on CUDA in a program built without it. (No device of CUDA exists there.)
#include "dmri/models/fit_device.hpp"

namespace cingulum {

Result<std::unique_ptr<FitDevice>> make_cuda_fit_device(Device&) {
  return fail(ErrorKind::unavailable, "fitting on CUDA: this program was built without CUDA");
}

}  // namespace cingulum
