// zip archives, whatever they hold.
#include "formats/crc32.hpp"
#include "formats/zip_archive.hpp"
#include "formats/zip_writer.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file_layer.hpp"

namespace {

using namespace cingulum;

std::vector<std::byte> content_of(std::span<const std::byte> file, const ZipEntry& entry, bool& good) {
  if (entry.deflated) {
    auto content = inflate_entry(file, entry);
    good = content.has_value();
    return good ? std::move(*content) : std::vector<std::byte>{};
  }
  good = verify_entry(file, entry).has_value();
  const auto bytes = packed_bytes(file, entry);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = fuzz::as_bytes(data, size);
  const auto entries = read_zip_directory(file);
  if (!entries) return 0;
  fuzz::MemoryFileLayer layer;
  WriteOptions options;
  options.layer = &layer;
  auto writer = fuzz::expect(ZipWriter::create("/again.zip", options), "writing again");
  std::vector<std::vector<std::byte>> contents;
  for (std::size_t i = 0; i < entries->size(); ++i) {
    bool good = false;
    contents.push_back(content_of(file, (*entries)[i], good));
    if (!good) return 0;
    const auto& bytes = contents.back();
    const Status begun = i % 2 == 0 ? writer.begin((*entries)[i].name)
                                    : writer.begin_known((*entries)[i].name, bytes.size(), crc32(bytes));
    fuzz::require(begun.has_value() && writer.append(bytes).has_value() && writer.end().has_value(), "writing again");
  }
  fuzz::require(writer.commit().has_value(), "writing again");
  const auto& written = layer.content("/again.zip");
  const auto again = fuzz::expect(read_zip_directory(written), "reading again");
  fuzz::require(again.size() == entries->size(), "the number of entries has changed");
  for (std::size_t i = 0; i < again.size(); ++i) {
    bool good = false;
    fuzz::require(again[i].name == (*entries)[i].name, "a name has changed");
    fuzz::require(content_of(written, again[i], good) == contents[i] && good, "content has changed");
  }
  return 0;
}
