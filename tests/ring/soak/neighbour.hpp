// Kernels without results that fill the GPU beside the actors of the soak, for as long as the object lives. Made before
// the grid starts: loading code would wait for the grid's end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace cingulum::ring::soak {

class Neighbour {
 public:
  virtual ~Neighbour() = default;
  virtual void start() = 0;
  // How many kernels it has run.
  [[nodiscard]] virtual std::uint64_t kernels() const = 0;
};

// Null, with the reason in `problem`, where there is no GPU (or CUDA is not compiled in).
[[nodiscard]] std::unique_ptr<Neighbour> make_neighbour(std::string& problem);

}  // namespace cingulum::ring::soak
