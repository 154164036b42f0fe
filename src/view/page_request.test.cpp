#include "view/page_request.hpp"

#include <gtest/gtest.h>

#include "runs/track/track_fields.hpp"

namespace cingulum::page_request_tests {
namespace {

const ArgumentText sphere = {"sphere", {"0,0,0,4"}, false};

TEST(PageRequest, each_row_of_the_table_is_accepted_where_it_may_change_per_answer) {
  std::size_t accepted = 0;
  for (const TrackField& field : track_fields()) {
    const std::string& name = field.argument.name;
    if (name == "sphere") continue;  // that of the seeds here
    ArgumentText one{name, {}, field.argument.type == ArgumentType::flag};
    if (!one.is_flag) one.texts = {field.argument.metavar == region_metavar ? "0,0,0,2" : "1"};
    const auto request = accept_page_request({sphere, one}, {}, "prob");
    const bool expected = may_change_per_answer(field) && name != "seed-sphere";
    EXPECT_EQ(request.has_value(), expected) << name;
    accepted += request.has_value() ? 1U : 0U;
  }
  EXPECT_GT(accepted, 30U);
}

TEST(PageRequest, what_a_request_leaves_out_is_put_there) {
  const auto request = accept_page_request({sphere}, {}, "det");
  ASSERT_TRUE(request) << request.error().message();
  EXPECT_EQ(*request, (std::vector<ArgumentText>{
                          {"dg", {"det"}, false}, {"seed-sphere", {"0,0,0,4"}, false}, {"nseeds", {"200"}, false}}));
  EXPECT_FALSE(accept_page_request({}, {}, "det")) << "without a sphere";
}

TEST(PageRequest, peaks_of_a_file_are_settled_when_it_is_read) {
  LiveSource source;
  source.options = {{"peaks", {"peaks.nii.gz"}, false}};
  const ArgumentText angle = {"min-separation-angle", {"30"}, false};
  EXPECT_TRUE(accept_page_request({sphere, angle}, {}, "det"));
  EXPECT_FALSE(accept_page_request({sphere, angle}, source, "det"));
}

TEST(PageRequest, a_region_of_a_request_is_a_sphere_and_never_a_file) {
  const ArgumentText file = {"include", {"/etc/passwd"}, false};
  const auto refused = accept_page_request({sphere, file}, {}, "det");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("accepted is a sphere"), std::string::npos);
}

TEST(PageRequest, the_command_has_source_and_request_in_words_that_a_shell_leaves_alone) {
  LiveSource source;
  source.data = {"/scratch/a b/dwi.nii.gz"};
  source.hidden_folder = "/scratch/";
  source.options = {{"mask", {"/scratch/m.nii.gz"}, false}, {"dg", {"prob"}, false}, {"full-sphere", {}, true}};
  const std::vector<ArgumentText> asked = {{"dg", {"det"}, false}, {"include", {"0,0,0,1", "1,1,1,1"}, false}};
  EXPECT_EQ(command_of_request(source, asked),
            "cingulum track 'a b/dwi.nii.gz' --mask=m.nii.gz --full-sphere --dg=det --include=0,0,0,1 "
            "--include=1,1,1,1 --out tracks.trx");
}

}  // namespace
}  // namespace cingulum::page_request_tests
