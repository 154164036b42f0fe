// The parts of the extension module, each in a file of its own.
#pragma once

#include <nanobind/nanobind.h>

namespace cingulum::python {

void bind_program(nanobind::module_& module);
void bind_track(nanobind::module_& module);
void bind_fit(nanobind::module_& module);
void bind_tractogram(nanobind::module_& module);
void bind_zarr(nanobind::module_& module);
void bind_ring(nanobind::module_& module);
void bind_device_memory(nanobind::module_& module);
void bind_oct(nanobind::module_& module);

}  // namespace cingulum::python
