// Runs one function of dmri on input from files and writes what it gives as raw numbers, for the Python tests that
// compare with DIPY and SciPy.
//   dmri_probe sphere NAME_OR_FILE [full]      text: "half|full n edges", then directions, then edges
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "dmri/sphere.hpp"

namespace cingulum {
namespace {

int complain(const Error& error) {
  fmt::print(stderr, "dmri_probe: {}\n", error.message());
  return 1;
}

int print_sphere(const std::vector<std::string>& arguments) {
  const bool full = arguments.size() > 1 && arguments[1] == "full";
  const auto sphere = full ? read_sphere(arguments[0], true) : sphere_by_name_or_file(arguments[0]);
  if (!sphere) return complain(sphere.error());
  fmt::print("{} {} {}\n", sphere->half ? "half" : "full", sphere->size(), sphere->edges.size());
  for (const auto& v : sphere->directions) fmt::print("{} {} {}\n", v.x, v.y, v.z);
  for (const auto& [a, b] : sphere->edges) fmt::print("{} {}\n", a, b);
  return 0;
}

}  // namespace
}  // namespace cingulum

int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  if (arguments.size() >= 2 && arguments[0] == "sphere") {
    return cingulum::print_sphere({arguments.begin() + 1, arguments.end()});
  }
  std::fputs("dmri_probe: see the head of dmri_probe.cpp\n", stderr);
  return 2;
}
