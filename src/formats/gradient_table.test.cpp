#include "formats/gradient_table.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

template <class T>
std::string message_of(const Result<T>& result) {
  return result ? "accepted" : result.error().message();
}

TEST(FslGradients, rows_and_columns_give_the_same_table) {
  const auto rows = parse_fsl_gradients("0 1000 2000 1000\n", "0 1 0 0\n0 0 1 0\n0 0 0 1\n");
  const auto columns = parse_fsl_gradients("0\n1000\n2000\n1000", "0 0 0\r\n1 0 0\r\n0\t1 0\r\n0,0,1");
  ASSERT_TRUE(rows) << rows.error().message();
  ASSERT_TRUE(columns) << columns.error().message();
  EXPECT_EQ(rows->b_values, (std::vector<double>{0, 1000, 2000, 1000}));
  EXPECT_EQ(rows->b_values, columns->b_values);
  EXPECT_EQ(rows->vectors, columns->vectors);
  EXPECT_EQ(rows->vectors[2], (Vec3d{0, 1, 0}));
  EXPECT_EQ(rows->frame, GradientFrame::fsl);
  EXPECT_TRUE(rows->warnings.empty());
}

TEST(FslGradients, counts_that_do_not_fit_are_named) {
  EXPECT_EQ(message_of(parse_fsl_gradients("0 1000", "0 1 0\n0 0 1\n0 0 0\n")),
            "2 b-values need 3 rows of 2 numbers, or 2 rows of 3; the b-vectors have 3 rows of 3 numbers");
  EXPECT_EQ(message_of(parse_fsl_gradients("0 1000 1000 5", "0 1 0 1\n0 0 1\n0 0 0 0\n")),
            "4 b-values need 3 rows of 4 numbers, or 4 rows of 3; the b-vectors have 3 rows of 3 to 4 numbers");
  EXPECT_EQ(message_of(parse_fsl_gradients("", "")), "b-values: there is no number in it");
  EXPECT_EQ(message_of(parse_fsl_gradients("1 2\n3 4\n", "")),
            "b-values: 4 numbers in 2 lines are neither one row nor one column");
  EXPECT_EQ(message_of(parse_fsl_gradients("0 1O00", "")), "b-values, line 1: '1O00' is not a number");
  EXPECT_EQ(message_of(parse_fsl_gradients("0 1e999", "")), "b-values, line 1: '1e999' is too large or too small");
}

TEST(FslGradients, three_volumes_are_read_as_rows_with_a_warning) {
  const auto table = parse_fsl_gradients("0 1000 1000", "0 1 0\n0 0 1\n0 0 0\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->vectors[1], (Vec3d{1, 0, 0}));
  EXPECT_EQ(table->warnings.size(), 1U);
}

TEST(FslGradients, vectors_are_normalised_and_the_odd_ones_are_told) {
  const auto table = parse_fsl_gradients("0 1000 1000 1000", "0 0.6 2 0.9999\n0 0.8 0 0\n0 0 0 0\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->vectors[2], (Vec3d{1, 0, 0}));
  EXPECT_EQ(table->vectors[3], (Vec3d{1, 0, 0}));
  ASSERT_EQ(table->warnings.size(), 1U);
  EXPECT_EQ(table->warnings[0],
            "1 of 4 vectors are not of unit length (worst 2): normalised, the b-values are kept as they are");
}

TEST(FslGradients, directions_that_are_missing_are_refused_except_at_b0) {
  const auto b0 = parse_fsl_gradients("5 1000", "nan 1\nnan 0\nnan 0\n");
  ASSERT_TRUE(b0) << b0.error().message();
  EXPECT_EQ(b0->vectors[0], (Vec3d{0, 0, 0}));
  EXPECT_EQ(b0->warnings.size(), 1U);
  EXPECT_EQ(message_of(parse_fsl_gradients("0 1000", "0 0\n0 0\n0 0\n")),
            "volume 1: b = 1000 and no direction (the vector is 0 0 0)");
  EXPECT_EQ(message_of(parse_fsl_gradients("0 1000", "0 inf\n0 0\n0 0\n")),
            "volume 1: b = 1000 and the vector inf 0 0");
  EXPECT_EQ(message_of(parse_fsl_gradients("0 -7", "0 1\n0 0\n0 0\n")),
            "volume 1: the b-value -7 is not a number of s/mm^2 from 0 on");
}

TEST(FslGradients, the_limit_of_b0_belongs_to_b0) {
  const auto at_the_limit = parse_fsl_gradients("50 50", "0 nan\n0 0\n0 0\n");
  ASSERT_TRUE(at_the_limit) << at_the_limit.error().message();
  EXPECT_EQ(at_the_limit->warnings,
            std::vector<std::string>{"volume 1: the vector is not finite, and b = 50: read as zero"});
  EXPECT_EQ(message_of(parse_fsl_gradients("0 50.5", "0 0\n0 0\n0 0\n")),
            "volume 1: b = 50.5 and no direction (the vector is 0 0 0)");
  EXPECT_EQ(message_of(parse_fsl_gradients("0 50.5", "0 nan\n0 0\n0 0\n")),
            "volume 1: b = 50.5 and the vector nan 0 0");
  EXPECT_EQ(message_of(parse_fsl_gradients("0 50", "0 1e200\n0 0\n0 0\n")),
            "volume 1: the vector 1e+200 0 0 is too long");
  // Shorter than 1e-6 is no direction.
  EXPECT_EQ(parse_fsl_gradients("0 50", "0 9e-7\n0 0\n0 0\n")->vectors[1], (Vec3d{0, 0, 0}));
  EXPECT_EQ(parse_fsl_gradients("0 50", "0 2e-6\n0 0\n0 0\n")->vectors[1], (Vec3d{1, 0, 0}));
}

TEST(FslGradients, of_the_lengths_the_farthest_from_one_is_told_and_roundings_are_not) {
  const auto warnings = [](const char* vectors) { return parse_fsl_gradients("1000 1000", vectors)->warnings; };
  EXPECT_EQ(warnings("1.009 0.991\n0 0\n0 0\n"), std::vector<std::string>{});
  EXPECT_EQ(warnings("1.25 0.5\n0 0\n0 0\n"),
            std::vector<std::string>{
                "2 of 2 vectors are not of unit length (worst 0.5): normalised, the b-values are kept as they are"});
  EXPECT_EQ(warnings("0.5 1.011\n0 0\n0 0\n"),
            std::vector<std::string>{
                "2 of 2 vectors are not of unit length (worst 0.5): normalised, the b-values are kept as they are"});
}

TEST(BValues, are_one_row_or_one_column_separated_in_any_usual_way) {
  const std::vector<double> expected = {0, 1000, 2000, 3000};
  for (const char* const text : {"0 1000 2000 3000", "0\n1000\n2000\n3000\n",
                                 "\xef\xbb\xbf"
                                 "0,1000;2000\t+3e3\r\n",
                                 "# b\n 0 \v1000\f2000 3000#4\n"}) {
    const auto values = parse_bvals(text);
    ASSERT_TRUE(values) << text << ": " << values.error().message();
    EXPECT_EQ(*values, expected) << text;
  }
  EXPECT_EQ(message_of(parse_bvals("0 1000\n2000\n")),
            "b-values: 3 numbers in 2 lines are neither one row nor one column");
  EXPECT_EQ(message_of(parse_bvals("0\n1e999\n")), "b-values, line 2: '1e999' is too large or too small");
  EXPECT_EQ(message_of(parse_bvals("0 1000x\n")), "b-values, line 1: '1000x' is not a number");
  EXPECT_EQ(message_of(parse_bvals("0 inf")), "volume 1: the b-value inf is not a number of s/mm^2 from 0 on");
  EXPECT_EQ(message_of(parse_bvals("# none")), "b-values: there is no number in it");
}

TEST(FslGradients, files_are_named_in_messages) {
  const TemporaryFolder folder;
  folder.put("a.bval", "0 1000 x");
  folder.put("a.bvec", "0 1\n0 0\n0 0\n");
  EXPECT_EQ(message_of(read_fsl_gradients(folder / "a.bval", folder / "a.bvec")),
            "reading " + (folder / "a.bval").native() + " and " + (folder / "a.bvec").native() +
                ": b-values, line 1: 'x' is not a number");
  EXPECT_EQ(read_fsl_gradients(folder / "a.bval", folder / "no").error().kind(), ErrorKind::not_found);
}

TEST(MrtrixGradients, lines_hold_vector_and_b_value_and_comments_are_skipped) {
  const auto table = parse_mrtrix_gradients("# command_history: dwi2tensor\n0 0 0 0\n\n0 -1 0 3000 # last\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->frame, GradientFrame::world);
  EXPECT_EQ(table->b_values, (std::vector<double>{0, 3000}));
  EXPECT_EQ(table->vectors[1], (Vec3d{0, -1, 0}));
  EXPECT_EQ(message_of(parse_mrtrix_gradients("0 0 0 0\n1 0 0\n")), "line 2: 3 numbers instead of x y z b");
  EXPECT_EQ(message_of(parse_mrtrix_gradients("# nothing\n")), "there is no number in it");
}

TEST(MrtrixGradients, vectors_that_are_not_of_unit_length_and_further_columns_are_told) {
  const auto table = parse_mrtrix_gradients("0 0 0 0 9\n0 0.5 0 1000 9\n0 0 4 1000 9\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->vectors[1], (Vec3d{0, 1, 0}));
  EXPECT_EQ(table->vectors[2], (Vec3d{0, 0, 1}));
  EXPECT_EQ(table->warnings,
            (std::vector<std::string>{
                "5 numbers in a line: those behind x y z b are ignored",
                "2 of 3 vectors are not of unit length (worst 4): normalised, the b-values are kept as they are"}));
}

TEST(GradientText, what_is_written_reads_to_the_bit) {
  const double x = std::sqrt(1.0 / 3);
  GradientTable table;
  table.b_values = {0, 1000.1, 2995};
  table.vectors = {{0, 0, 0}, {x, -x, std::sqrt(1 - 2 * x * x)}, {0.6, 0.8, 0}};
  const auto fsl = parse_fsl_gradients(format_bvals(table), format_bvecs(table));
  ASSERT_TRUE(fsl);
  EXPECT_EQ(fsl->b_values, table.b_values);
  EXPECT_EQ(fsl->vectors, table.vectors);
  EXPECT_EQ(format_bvals(table), "0 1000.1 2995\n");
  const auto mrtrix = parse_mrtrix_gradients(format_mrtrix_table(table));
  ASSERT_TRUE(mrtrix);
  EXPECT_EQ(mrtrix->vectors, table.vectors);
}

TEST(GradientFrames, each_frame_has_its_way_to_the_image_axes) {
  GradientTable table;
  table.b_values = {0, 1000};
  const Vec3d v{0.48, 0.6, 0.64};
  table.vectors = {{0, 0, 0}, v};
  Affine ras;
  const auto one = [&](GradientFrame frame, const Affine& affine) {
    const auto directions = directions_in_image_axes(table, frame, affine);
    EXPECT_EQ(directions[0], (Vec3d{0, 0, 0}));
    return directions[1];
  };
  // FSL: x is negated where the determinant is positive, whatever else the affine does.
  EXPECT_EQ(one(GradientFrame::fsl, ras), (Vec3d{-v.x, v.y, v.z}));
  Affine las;
  las.at(0, 0) = -2;
  EXPECT_EQ(one(GradientFrame::fsl, las), v);
  EXPECT_EQ(one(GradientFrame::voxel, ras), v);
  EXPECT_EQ(one(GradientFrame::voxel, las), v);
  // World: the image axes of this affine are y, -z, -x with other lengths.
  Affine turned;
  turned.rows = {0, 0, -3, 5, 2, 0, 0, 6, 0, -4, 0, 7};
  const Vec3d found = one(GradientFrame::world, turned);
  EXPECT_NEAR(found.x, v.y, 1e-15);
  EXPECT_NEAR(found.y, -v.z, 1e-15);
  EXPECT_NEAR(found.z, -v.x, 1e-15);
}

TEST(GradientFrames, an_oblique_affine_turns_world_vectors_back) {
  // A turn by 0.3 about z, written out.
  const double c = 0.95533648912560601964, s = 0.29552020666133957510;
  Affine oblique;
  oblique.rows = {2 * c, -2 * s, 0, 0, 2 * s, 2 * c, 0, 0, 0, 0, 2, 0};
  GradientTable table;
  table.b_values = {1000};
  table.vectors = {{c, s, 0}};
  const auto directions = directions_in_image_axes(table, GradientFrame::world, oblique);
  EXPECT_NEAR(directions[0].x, 1, 1e-15);
  EXPECT_NEAR(directions[0].y, 0, 1e-15);
}

TEST(Shells, b_values_that_lie_close_belong_together) {
  GradientTable table;
  table.b_values = {1005, 0, 995, 2000, 50, 1000, 1990, 3000, 51};
  table.vectors.resize(table.b_values.size());
  const auto shells = find_shells(table);
  ASSERT_EQ(shells.size(), 5U);
  EXPECT_EQ(shells[0].volumes, (std::vector<std::size_t>{1, 4}));
  EXPECT_EQ(shells[0].b_value, 25);
  EXPECT_EQ(shells[1].volumes, (std::vector<std::size_t>{8}));
  EXPECT_EQ(shells[2].volumes, (std::vector<std::size_t>{0, 2, 5}));
  EXPECT_EQ(shells[2].b_value, 1000);
  EXPECT_EQ(shells[2].smallest, 995);
  EXPECT_EQ(shells[2].largest, 1005);
  EXPECT_EQ(shells[3].volumes, (std::vector<std::size_t>{3, 6}));
  EXPECT_EQ(shells[4].b_value, 3000);
  EXPECT_TRUE(find_shells(GradientTable{}).empty());
  // A gap as wide as `width` does not part them; b0 do not join the shell above, however near.
  table.b_values = {10, 11, 30, 50.5};
  table.vectors.resize(table.b_values.size());
  const auto of_widths = [&](double width) { return find_shells(table, 10, width).size(); };
  EXPECT_EQ(of_widths(20.5), 2U);
  EXPECT_EQ(of_widths(20.4), 3U);
  EXPECT_EQ(of_widths(18.9), 4U);
}

}  // namespace
}  // namespace cingulum
