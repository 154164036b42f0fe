// Doubles that begin at a cache line: tables and work space of kernels that load eight numbers at a time.
#pragma once

#include <cstddef>
#include <vector>

namespace cingulum {

class AlignedNumbers {
 public:
  AlignedNumbers() = default;
  explicit AlignedNumbers(std::size_t count) : lines_((count + 7) / 8), count_(count) {}

  [[nodiscard]] double* data() { return lines_.empty() ? nullptr : lines_.front().values; }
  [[nodiscard]] const double* data() const { return lines_.empty() ? nullptr : lines_.front().values; }
  [[nodiscard]] std::size_t size() const { return count_; }
  double& operator[](std::size_t index) { return data()[index]; }
  double operator[](std::size_t index) const { return data()[index]; }

 private:
  struct alignas(64) Line {
    double values[8] = {};
  };
  std::vector<Line> lines_;
  std::size_t count_ = 0;
};

}  // namespace cingulum
