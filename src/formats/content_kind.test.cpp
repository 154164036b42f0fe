#include "formats/content_kind.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "formats/gzip.hpp"
#include "support/each_device.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::content_kind_tests {
namespace {

using enum ContentKind;
using namespace std::string_literals;

ContentKind kind_of(std::string_view content, const std::string& name = "file") {
  const TemporaryFolder folder;
  folder.put(name, content);
  const auto kind = find_content_kind(folder / name);
  EXPECT_TRUE(kind) << testing::message_of(kind);
  return kind.value_or(unknown);
}

TEST(ContentKind, of_tables_is_told_by_their_shape) {
  EXPECT_EQ(kind_of("0 1000 1000 1000\n"), b_values);
  EXPECT_EQ(kind_of("0"), b_values);
  EXPECT_EQ(kind_of("0\n1000\n1000\n"), b_values);
  EXPECT_EQ(kind_of("1 2 3 4\n5 6 7 8\n"), mrtrix_table);
  EXPECT_EQ(kind_of("1 2 3 4\n5 6 7 8\n9 10 11 12\n"), mrtrix_table) << "four columns come before three rows";
  EXPECT_EQ(kind_of("1 2 3\n5 6 7\n"), b_vectors);
  EXPECT_EQ(kind_of("1 2 3\n5 6 7\n1 2 3\n5 6 7\n"), b_vectors);
  EXPECT_EQ(kind_of("1 2\n5 6\n7 8\n"), b_vectors) << "three rows";
  EXPECT_EQ(kind_of("1 2 3 4 5\n5 6 7 8 9\n7 8 9 0 1\n"), b_vectors);
  EXPECT_EQ(kind_of("1 2 3 4 5\n5 6 7 8 9\n"), mrtrix_table);
  EXPECT_EQ(kind_of("1 2 3 4\n5 6 7 8 9\n"), mrtrix_table);
  EXPECT_EQ(kind_of("1 2 3\n5 6 7 8\n"), unknown);
  EXPECT_EQ(kind_of("1 2\n3 4\n"), unknown);
  EXPECT_EQ(kind_of("1\n2 3\n"), unknown);
  EXPECT_EQ(kind_of("4 3\n2 1\n1 4\n3 3 3 3\n"), unknown);
}

TEST(ContentKind, of_tables_ignores_comments_signs_and_separators) {
  EXPECT_EQ(kind_of("# 1 2 3 4 5\n1 2 3 4 # five\n\n  \t\r\n5,6;7\t+8\r\n"), mrtrix_table);
  EXPECT_EQ(kind_of("1e3 -2.5 +.5 nan\n1 2 3 4\n"), mrtrix_table);
  EXPECT_EQ(kind_of("1e999 2 3 4\n1 2 3 4\n"), mrtrix_table) << "too large for a double, and a number";
  for (const char* const other :
       {"", "\n\n", "# nothing\n", "one", "1 2 x\n", "1x 2\n", "1 2 3 4\n5 6 7 eight\n", "+\n"}) {
    EXPECT_EQ(kind_of(other), unknown) << other;
  }
  EXPECT_EQ(kind_of("1 2\0 3"s), unknown);
}

TEST(ContentKind, of_tables_is_told_by_a_name_that_has_bval_or_bvec_in_it) {
  EXPECT_EQ(kind_of("1 2 3\n4 5 6\n", "x.bval"), b_values);
  EXPECT_EQ(kind_of("1 2 3 4\n", "bvecs"), b_vectors);
  EXPECT_EQ(kind_of("one", "x.bval"), unknown);
}

// 65536 bytes of a text are looked at: a line that is cut off there is left out unless it is the only one.
TEST(ContentKind, of_long_tables_is_told_by_whole_lines) {
  std::string rows;
  while (rows.size() < 70000) rows += "11 22 333\n";
  EXPECT_EQ(rows.substr(65530, 6), "11 22 ") << "two numbers of the last line";
  EXPECT_EQ(kind_of(rows), b_vectors);
  std::string row;
  while (row.size() < 70000) row += "1234 ";
  EXPECT_EQ(kind_of(row), b_values);
  // The end of what is looked at lies inside of a word that would be none.
  std::string cut = row.substr(0, 65535) + "-5 1";
  EXPECT_EQ(kind_of(cut), b_values);
  // A word that is none is found before it, and not behind.
  EXPECT_EQ(kind_of(row.substr(0, 65530) + " x " + row), unknown);
  EXPECT_EQ(kind_of(row.substr(0, 65540) + " x " + row), b_values);
  // A text of exactly as many bytes as are looked at less one is whole.
  EXPECT_EQ(kind_of(row.substr(0, 65534) + "-"), unknown);
}

TEST(ContentKind, of_files_with_a_mark_is_told_by_it) {
  EXPECT_EQ(kind_of("TRACK\0..."s), tractogram);
  EXPECT_EQ(kind_of("TRACKS"), unknown);
  EXPECT_EQ(kind_of("mrtrix tracks\n"), tractogram);
  EXPECT_EQ(kind_of("PK\3\4"), tractogram);
  EXPECT_EQ(kind_of("mrtrix image\n"), mrtrix_image);
  EXPECT_EQ(kind_of("{\"a\": 1}"), json);
  EXPECT_EQ(kind_of(" \t\r\n[1, 2]"), json);
  EXPECT_EQ(kind_of("}"), unknown);
}

// 348 and 540 in either order of bytes, whatever follows.
TEST(ContentKind, of_headers_of_images_is_told_by_their_size) {
  for (const std::string& size : {"\x5c\1\0\0"s, "\0\0\1\x5c"s, "\x1c\2\0\0"s, "\0\0\2\x1c"s}) {
    EXPECT_EQ(kind_of(size), nifti);
    EXPECT_EQ(kind_of(size + std::string(600, '\0')), nifti);
    EXPECT_EQ(kind_of(size.substr(0, 3)), unknown);
    for (std::size_t i = 0; i < 4; ++i) {
      std::string other = size;
      other[i] = static_cast<char>(other[i] + 4);
      EXPECT_EQ(kind_of(other + std::string(600, '\0')), unknown) << i;
    }
  }
}

// Behind gzip images and tractograms are known, tables and JSON are not.
TEST(ContentKind, behind_gzip_is_told_where_its_readers_go_there) {
  const std::pair<std::string, ContentKind> cases[] = {{"\x5c\1\0\0"s, nifti},
                                                       {"mrtrix tracks\n", tractogram},
                                                       {"mrtrix image\n", mrtrix_image},
                                                       {"0 1000\n", gzip},
                                                       {"{}", gzip},
                                                       {"what", gzip}};
  for (const auto& [content, kind] : cases) {
    const TemporaryFolder folder;
    ASSERT_OK_AND_ASSIGN(AtomicFile file, AtomicFile::create(folder / "a.gz", {.sync = false}));
    ASSERT_OK_AND_ASSIGN(GzipWriter writer, GzipWriter::create(file, 1, nullptr));
    ASSERT_OK(writer.append(std::as_bytes(std::span(content))));
    ASSERT_OK(writer.finish());
    ASSERT_OK(file.commit());
    EXPECT_EQ(find_content_kind(folder / "a.gz").value(), kind) << content;
    // Damaged behind its first bytes it is still what it is.
    std::string damaged = folder.content("a.gz");
    damaged.back() = static_cast<char>(damaged.back() + 1);
    folder.put("a.gz", damaged);
    EXPECT_EQ(find_content_kind(folder / "a.gz").value(), kind) << content;
  }
}

TEST(ContentKind, of_folders_is_told_by_a_header) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a");
  EXPECT_EQ(find_content_kind(folder / "a").value(), ContentKind::folder);
  folder.put("a/header.json", "{}");
  EXPECT_EQ(find_content_kind(folder / "a").value(), tractogram);
  EXPECT_TRUE(testing::fails_with(find_content_kind(folder / "none"), ErrorKind::not_found, "none: no such file"));
}

TEST(ContentKind, names_are_those_that_people_read) {
  const std::pair<ContentKind, const char*> names[] = {{nifti, "NIfTI image"},
                                                       {tractogram, "tractogram"},
                                                       {b_values, "b-values"},
                                                       {b_vectors, "b-vectors"},
                                                       {mrtrix_table, "MRtrix gradient table"},
                                                       {mrtrix_image, "MRtrix image"},
                                                       {json, "JSON"},
                                                       {gzip, "gzip"},
                                                       {ContentKind::folder, "folder"},
                                                       {unknown, "unknown"}};
  for (const auto& [kind, name] : names) EXPECT_EQ(content_kind_name(kind), name);
}

}  // namespace
}  // namespace cingulum::content_kind_tests
