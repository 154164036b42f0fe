// cingulum._native: what the package asks of the library. Private: its functions take what cingulum/*.py has checked
// and brought into form. Importing it opens no device, starts no thread and changes no signal handler.
#include <nanobind/nanobind.h>

#include <cstdlib>

#include "base/log.hpp"
#include "base/version.hpp"
#include "job.hpp"
#include "native_error.hpp"
#include "parts.hpp"

namespace nb = nanobind;

NB_MODULE(_native, module) {
  using namespace cingulum;
  using namespace cingulum::python;
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const NativeError& failure) {
      const Error& error = failure.error();
      const std::string kind(error_kind_name(error.kind()));
      const std::string argument(error.argument());
      const std::string file(error.file());
      const nb::object made =
          nb::module_::import_("cingulum._errors")
              .attr("make_error")(kind.c_str(), error.message().c_str(), argument.c_str(), file.c_str());
      PyErr_SetObject(made.type().ptr(), made.ptr());
    }
  });
  send_log_to_python(true);
  // Mesa asks Wayland for a display, and libwayland complains on stderr where this is not set (src/cli/process.cpp).
  setenv("XDG_RUNTIME_DIR", "/nonexistent", 0);
  module.def("version", [] { return version_text(); });
  bind_program(module);
  bind_track(module);
  bind_fit(module);
  bind_tractogram(module);
  bind_zarr(module);
  bind_ring(module);
  bind_device_memory(module);
  bind_oct(module);
}
