// Makes the slices of a run one after the other, and keeps them in its work folder under a key of all that decides
// their voxels: a slice that an earlier run finished is taken as it is. One that is made in memory is written while the
// next one is made. Called by reconstruction.cpp, once places, fits and planes are known.
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.hpp"
#include "base/side_task.hpp"
#include "base/thread_pool.hpp"
#include "oct/run/run_state.hpp"

namespace cingulum::oct {

class SliceMaker {
 public:
  explicit SliceMaker(RunState& run) : run_(run) {}

  // Starts the threads that wait for the disk.
  [[nodiscard]] Status start_writers();
  // The last slice may still be written when it returns.
  [[nodiscard]] Status make_all();
  // Waits for it.
  [[nodiscard]] Status end_writing();

 private:
  struct MadeSlice;
  [[nodiscard]] Result<MadeSlice> make(std::size_t s);
  [[nodiscard]] Status write_behind(std::size_t s, MadeSlice made);

  RunState& run_;
  std::unique_ptr<ThreadPool> writers_;
  SideTask<void> writing_;  // the last slice that was made in memory
};

}  // namespace cingulum::oct
