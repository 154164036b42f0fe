#include "tract/run/run_estimate.hpp"

#include <gtest/gtest.h>

namespace cingulum::run_estimate_tests {
namespace {

RunFacts brain() {
  RunFacts facts;
  facts.voxels = 652'536;
  facts.mask_voxels = 257'831;
  facts.volumes = facts.fitted_volumes = 160;
  facts.coefficients = 45;
  facts.record_numbers = 46;
  facts.getter = Getter::prob;
  facts.seeds = 100'000;
  facts.threads = 2;
  return facts;
}

TEST(RunEstimate, of_the_brain_phantom_is_what_was_measured) {
  const RunEstimate estimate = estimate_run(brain());
  EXPECT_GT(estimate.host_bytes, 310'800'000u) << "resident at the most";
  EXPECT_LT(estimate.host_bytes, 2 * 310'800'000u);
  EXPECT_NEAR(static_cast<double>(estimate.points), 9'124'848, 9'124'848 / 2.0);
  EXPECT_NEAR(static_cast<double>(estimate.bytes), 110'282'560, 110'282'560 / 2.0);
  EXPECT_EQ(estimate.device_bytes, 0u);
}

TEST(RunEstimate, grows_with_what_is_asked_for) {
  const RunEstimate before = estimate_run(brain());
  RunFacts more = brain();
  more.mask_voxels *= 2;
  EXPECT_GT(estimate_run(more).host_bytes, before.host_bytes);
  EXPECT_GT(estimate_run(more).prepare_seconds, before.prepare_seconds);
  more = brain();
  more.amplitudes = true;
  more.record_numbers = 322;
  EXPECT_GT(estimate_run(more).host_bytes, 2 * more.mask_voxels * 321 * 4) << "sampled, and as records";
  more = brain();
  more.seeds *= 3;
  EXPECT_NEAR(static_cast<double>(estimate_run(more).points), 3.0 * static_cast<double>(before.points), 3);
  EXPECT_EQ(estimate_run(more).host_bytes, before.host_bytes) << "streamlines are written as they come";
  more = brain();
  more.on_gpu = true;
  EXPECT_GT(estimate_run(more).device_bytes, more.mask_voxels * 48 * 4);
}

TEST(RunEstimate, bytes_are_those_of_the_format) {
  RunFacts facts = brain();
  facts.save_seeds = true;
  const RunEstimate trx = estimate_run(facts);
  EXPECT_EQ(trx.bytes, 1000 + 12 * trx.points + (8 + 18) * trx.streamlines);
  facts.position_bytes = 2;
  EXPECT_EQ(estimate_run(facts).bytes, 1000 + 6 * trx.points + (8 + 18) * trx.streamlines);
  facts.format = TractogramFormat::tck;
  EXPECT_EQ(estimate_run(facts).bytes, 1000 + 12 * trx.points + 12 * trx.streamlines);
  facts.select = 500;
  EXPECT_EQ(estimate_run(facts).streamlines, 500u);
  facts.seeds = 100;
  EXPECT_EQ(estimate_run(facts).streamlines, 100u);
  facts.seeds = 0;
  EXPECT_EQ(estimate_run(facts).points, 0u);
}

}  // namespace
}  // namespace cingulum::run_estimate_tests
