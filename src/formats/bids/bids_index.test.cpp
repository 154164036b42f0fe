#include "formats/bids/bids_index.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/bids/bids_sidecar.hpp"
#include "formats/bids/bids_uri.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::bids_index_tests {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class BidsFolder : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text = "") {
    const fs::path path = folder_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  BidsIndex index(const BidsSelection& selection = {}) {
    auto made = index_bids(folder_.path(), selection);
    EXPECT_TRUE(made) << made.error().message();
    return made ? std::move(*made) : BidsIndex();
  }
  TemporaryFolder folder_;
};

TEST_F(BidsFolder, series_inherit_the_nearest_table_that_applies) {
  put("dwi.bval");
  put("acq-b_dwi.bvec");
  put("dwi.json");
  put("sub-01/sub-01_dwi.bvec");
  put("sub-01/ses-x/dwi/sub-01_ses-x_acq-b_run-1_dwi.nii.gz");
  put("sub-01/ses-x/dwi/sub-01_ses-x_acq-b_run-2_dwi.nii.gz");
  put("sub-01/ses-x/dwi/sub-01_ses-x_acq-b_run-2_dwi.bvec");
  put("sub-01/ses-x/dwi/sub-01_ses-x_acq-b_run-2_dwi.json");
  put("sub-02/dwi/sub-02_acq-b_dwi.nii");
  put("sub-02/dwi/sub-02_acq-c_dwi.nii");
  const BidsIndex made = index();
  ASSERT_EQ(made.series.size(), 4u);
  EXPECT_EQ(made.series[0].unit(), "sub-01_ses-x_acq-b_run-1");
  EXPECT_EQ(made.series[0].session, "x");
  EXPECT_EQ(made.series[0].bval, "dwi.bval");
  EXPECT_EQ(made.series[0].bvec, "sub-01/sub-01_dwi.bvec");
  EXPECT_EQ(made.series[0].json, std::vector<fs::path>{"dwi.json"});
  EXPECT_EQ(made.series[1].bvec, "sub-01/ses-x/dwi/sub-01_ses-x_acq-b_run-2_dwi.bvec");
  EXPECT_EQ(made.series[1].json,
            (std::vector<fs::path>{"dwi.json", "sub-01/ses-x/dwi/sub-01_ses-x_acq-b_run-2_dwi.json"}));
  EXPECT_EQ(made.series[2].bvec, "acq-b_dwi.bvec");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(made.series[static_cast<std::size_t>(i)].problem, "");
  EXPECT_EQ(made.series[3].problem, "there is no *_dwi.bvec for it");
  EXPECT_EQ(made.series[3].problem_file, "sub-02/dwi/sub-02_acq-c_dwi.nii");
  EXPECT_EQ(made.subjects, (std::vector<std::string>{"01", "02"}));
  EXPECT_TRUE(made.problems.empty());
}

TEST_F(BidsFolder, two_tables_that_apply_at_one_level_are_named_and_that_of_the_own_name_goes_before_both) {
  put("sub-01/dwi/sub-01_acq-b_dir-AP_dwi.nii.gz");
  put("sub-01/dwi/sub-01_acq-b_dir-AP_dwi.bval");
  put("sub-01/dwi/sub-01_acq-b_dwi.bvec");
  put("sub-01/dwi/sub-01_dir-AP_dwi.bvec");
  ASSERT_EQ(index().series.size(), 1u);
  EXPECT_NE(index().series[0].problem.find("two files *.bvec apply to it"), std::string::npos);
  EXPECT_EQ(index().series[0].problem_file, "sub-01/dwi/sub-01_dir-AP_dwi.bvec");
  put("sub-01/dwi/sub-01_acq-b_dir-AP_dwi.bvec");
  EXPECT_EQ(index().series[0].problem, "");
  EXPECT_EQ(index().series[0].bvec, "sub-01/dwi/sub-01_acq-b_dir-AP_dwi.bvec");
}

TEST_F(BidsFolder, masks_of_derivatives_are_those_of_the_space_and_two_are_named) {
  const std::string base = "sub-01/dwi/sub-01_space-ACPC_";
  put(base + "desc-preproc_dwi.nii.gz");
  put(base + "desc-preproc_dwi.bval");
  put(base + "desc-preproc_dwi.bvec");
  put(base + "desc-brain_mask.nii.gz");
  put(base + "desc-csf_mask.nii.gz");
  put("sub-01/dwi/sub-01_space-T1w_desc-brain_mask.nii.gz");
  put("sub-01/dwi/sub-01_desc-brain_mask.nii.gz");
  ASSERT_EQ(index().series.size(), 1u);
  EXPECT_EQ(index().series[0].mask, base + "desc-brain_mask.nii.gz");
  EXPECT_EQ(index().series[0].unit(), "sub-01_space-ACPC");
  EXPECT_EQ(bids_tractogram_name(index().series[0].name, "prob"),
            "sub-01_space-ACPC_tract-wholebrain_track-prob_tractogram");
  put(base + "mask.nii.gz");
  EXPECT_NE(index().series[0].problem.find("two masks apply to it"), std::string::npos);
}

TEST_F(BidsFolder, odd_names_and_empty_subjects_are_problems_of_their_own) {
  put("sub-0 1/dwi/sub-0 1_dwi.nii.gz");
  put("sub-02/anat/sub-02_T1w.nii.gz");
  put("sub-03/dwi/sub-04_dwi.nii.gz");
  put("sub-03/dwi/sub-04_dwi.bval");
  put("sub-03/dwi/sub-04_dwi.bvec");
  put("sub-05/ses-a b/dwi/x_dwi.nii.gz");
  put("sub-06/dwi/sub-06_acq-a_acq-b_dwi.nii.gz");
  put("sub-07/dwi/sub-07_dwi.nii.gz");
  put("sub-07/dwi/sub-07_dwi.nii");
  put("sub-07/dwi/sub-07_dwi.bval");
  put("sub-07/dwi/sub-07_dwi.bvec");
  fs::create_directory(folder_.path() / "sub-08");
  fs::create_symlink("dwi", folder_.path() / "sub-08/dwi");
  const BidsIndex made = index();
  ASSERT_EQ(made.problems.size(), 5u);
  EXPECT_EQ(made.problems[0].unit, "sub-0 1");
  EXPECT_EQ(made.problems[1].unit, "sub-02");
  EXPECT_NE(made.problems[1].what.find("no diffusion series"), std::string::npos);
  EXPECT_EQ(made.problems[2].file, "sub-05/ses-a b");
  EXPECT_EQ(made.problems[3].file, "sub-06/dwi/sub-06_acq-a_acq-b_dwi.nii.gz");
  EXPECT_EQ(made.problems[4].unit, "sub-08");
  EXPECT_NE(made.problems[4].what.find("symbolic links"), std::string::npos) << made.problems[4].what;
  ASSERT_EQ(made.series.size(), 3u);
  EXPECT_NE(made.series[0].problem.find("not of the folder"), std::string::npos);
  for (const std::size_t i : {1u, 2u}) {
    EXPECT_NE(made.series[i].problem.find("two series are one"), std::string::npos);
  }
}

TEST_F(BidsFolder, only_what_is_selected_is_looked_at) {
  for (const char* subject : {"01", "02", "03"}) {
    for (const char* session : {"a", "b"}) {
      const std::string base = fmt::format("sub-{0}/ses-{1}/dwi/sub-{0}_ses-{1}_dwi", subject, session);
      for (const char* ending : {".nii.gz", ".bval", ".bvec"}) put(base + ending);
    }
  }
  const BidsIndex made = index({.subjects = {"03", "01"}, .sessions = {"b"}});
  ASSERT_EQ(made.series.size(), 2u);
  EXPECT_EQ(made.series[0].unit(), "sub-01_ses-b");
  EXPECT_EQ(made.series[1].unit(), "sub-03_ses-b");
  EXPECT_TRUE(made.problems.empty());
  EXPECT_FALSE(index_bids(folder_.path() / "absent", {}));
}

TEST(BidsNames, labels_have_letters_and_digits_alone) {
  for (const char* good : {"01", "a", "A+b"}) EXPECT_TRUE(is_bids_label(good)) << good;
  for (const char* bad : {"", "..", "a b", "a/b", "a-b", "a_b", "\xc3\xa9"}) EXPECT_FALSE(is_bids_label(bad)) << bad;
  EXPECT_EQ(*bids_label_of("sub-01", "sub", "it"), "01");
  EXPECT_EQ(*bids_label_of("01", "sub", "it"), "01");
  EXPECT_FALSE(bids_label_of("..", "sub", "it"));
  EXPECT_FALSE(parse_bids_name("sub-01_dwi"));
  EXPECT_FALSE(parse_bids_name("sub-01_sub-02_dwi.nii"));
  EXPECT_EQ(parse_bids_name("dwi.bval")->entities.size(), 0u);
}

TEST(BidsSidecar, says_ours_in_one_member_and_is_read_back_without_the_rest) {
  const Json ours = {{"xxh3_128", "ab"}, {"bids", {{"Sources", {"bids:raw:x"}}}}};
  const Json written = sidecar_as_written(ours, "sub-01_tractogram.trx");
  EXPECT_EQ(written, (Json{{"Sources", {"bids:raw:x"}}, {"Cingulum", {{"xxh3_128", "ab"}}}}));
  EXPECT_EQ(sidecar_as_read(written), (Json{{"xxh3_128", "ab"}}));
  EXPECT_EQ(sidecar_as_written(Json{{"a", 1}}, "tracks.trx"), (Json{{"a", 1}}));
  const Json run = {{"run", {{"host", "h"}, {"threads", 2}, {"folder", "/f"}}}};
  EXPECT_EQ(sidecar_as_written(run, "sub-01_tractogram.trx"), (Json{{"Cingulum", {{"run", {{"threads", 2}}}}}}));
  EXPECT_EQ(sidecar_as_written(run, "tracks.trx"), run);
  EXPECT_EQ(sidecar_as_read(Json{{"a", 1}}), (Json{{"a", 1}}));
  EXPECT_TRUE(has_bids_sidecar("x/sub-01_tractogram.tck"));
  EXPECT_FALSE(has_bids_sidecar("sub-01_tractogram.nii"));
  EXPECT_FALSE(has_bids_sidecar("tractogram_1.trx"));
}

TEST_F(BidsFolder, uris_lead_to_the_dataset_that_is_linked_and_never_out_of_it) {
  put("out/dataset_description.json", R"({"DatasetLinks": {"raw": "../data"}})");
  const fs::path sidecar = folder_.path() / "out/sub-01/dwi/a_tractogram.json";
  put("out/sub-01/dwi/a_tractogram.json");
  EXPECT_EQ(bids_uri("raw", "sub-01/dwi/x.nii"), "bids:raw:sub-01/dwi/x.nii");
  EXPECT_EQ(resolve_bids_uri("bids:raw:sub-01/dwi/x.nii", sidecar), folder_.path() / "data/sub-01/dwi/x.nii");
  EXPECT_EQ(resolve_bids_uri("bids::sub-01/x.nii", sidecar), folder_.path() / "out/sub-01/x.nii");
  EXPECT_FALSE(resolve_bids_uri("bids:raw:../x.nii", sidecar));
  EXPECT_FALSE(resolve_bids_uri("bids:raw:/etc/x", sidecar));
  EXPECT_FALSE(resolve_bids_uri("bids:other:x.nii", sidecar));
  EXPECT_FALSE(resolve_bids_uri("x.nii", sidecar));
  ASSERT_TRUE(write_local_link(folder_.path() / "out", "other", folder_.path() / "elsewhere", {}));
  EXPECT_EQ(resolve_bids_uri("bids:other:x.nii", sidecar), folder_.path() / "elsewhere/x.nii");
}

}  // namespace
}  // namespace cingulum::bids_index_tests
