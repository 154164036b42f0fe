#include "base/file_layer.hpp"

#include <gtest/gtest.h>

namespace cingulum {
namespace {

TEST(FileLayer, answers_a_failure_with_minus_its_number) {
  FileLayer& layer = FileLayer::system();
  constexpr int closed = -1;
  EXPECT_EQ(layer.write(closed, "x", 1), -EBADF);
  EXPECT_EQ(layer.write_at(closed, "x", 1, 0), -EBADF);
  EXPECT_EQ(layer.sync(closed), -EBADF);
  EXPECT_EQ(layer.lock(closed), -EBADF);
  EXPECT_EQ(layer.close(closed), -EBADF);
  EXPECT_EQ(layer.unlink("/nonexistent/cingulum-test"), -ENOENT);
}

}  // namespace
}  // namespace cingulum
