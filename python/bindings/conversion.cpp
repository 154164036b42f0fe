// Numbers of other types as float32, by all threads: NumPy converts by one, and a series that nibabel scaled is
// float64.
#include <algorithm>

#include "arrays.hpp"
#include "base/settings.hpp"
#include "base/thread_pool.hpp"
#include "native_error.hpp"
#include "parts.hpp"

namespace cingulum::python {
namespace {

using Numbers = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t at_once = std::size_t{1} << 16U;

template <class T>
bool convert(const Numbers& from, const Floats& to) {
  if (from.dtype() != nb::dtype<T>()) return false;
  const T* const numbers = static_cast<const T*>(from.data());
  float* const floats = to.data();
  const std::size_t size = from.size();
  const nb::gil_scoped_release without_gil;
  const auto pool = value_or_throw(ThreadPool::create(default_thread_count()));
  // What is beyond float32 becomes infinite, as in NumPy.
  pool->parallel_for(size, at_once, [&](std::size_t begin, std::size_t end) {
    std::transform(numbers + begin, numbers + end, floats + begin, [](T value) { return static_cast<float>(value); });
  });
  return true;
}

// False where the type is none of these: nothing was done then.
bool to_float32(const Numbers& from, const Floats& to) {
  if (from.size() != to.size()) throw nb::value_error("as many numbers as floats");
  return convert<double>(from, to) || convert<std::int16_t>(from, to) || convert<std::uint16_t>(from, to) ||
         convert<std::uint8_t>(from, to) || convert<std::int32_t>(from, to);
}

}  // namespace

void bind_conversion(nb::module_& module) {
  module.def("to_float32", to_float32, nb::arg("numbers"), nb::arg("floats"));
}

}  // namespace cingulum::python
