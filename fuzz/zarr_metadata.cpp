// zarr.json and .zarray of arrays, and the attributes of OME-Zarr groups: one text, given to every parser that may meet
// it.
#include "formats/sidecar.hpp"
#include "fuzz/fuzz_target.hpp"
#include "zarr/array_metadata.hpp"
#include "zarr/ome_zarr.hpp"

namespace {

using namespace cingulum;
using namespace cingulum::zarr;

Result<ArrayMetadata> parse_array(const Json& json) {
  return json.is_object() && json.value("zarr_format", Json()) == 2 ? parse_v2_array(json, Json())
                                                                    : parse_v3_array(json);
}

void check_array(const Json& json) {
  const auto found = parse_array(json);
  if (!found) return;
  const ArrayMetadata again =
      fuzz::expect(parse_array(fuzz::expect(parse_json(found->document), "the document is no JSON")), "parsing again");
  fuzz::require(again.format == found->format && again.shape == found->shape, "the shape has changed");
  fuzz::require(again.chunk_shape == found->chunk_shape && again.leaf_shape() == found->leaf_shape(),
                "the chunks have changed");
  fuzz::require(again.type == found->type && again.fill == found->fill && again.fill_is_null == found->fill_is_null,
                "type or fill value have changed");
  fuzz::require(again.leaf_coding().layout == found->leaf_coding().layout &&
                    again.leaf_coding().chain == found->leaf_coding().chain &&
                    describe_coding(again) == describe_coding(*found),
                "the codecs have changed");
  fuzz::require(again.key_encoding == found->key_encoding && again.separator == found->separator &&
                    again.dimension_names == found->dimension_names && again.attributes == found->attributes,
                "keys, names or attributes have changed");
  const Shape grid = found->grid();
  (void)found->chunk_key(Shape(grid.size(), 0));
}

void check_image(const Json& attributes) {
  const auto image = parse_ome_image(attributes, "group");
  if (!image || !image->has_value()) return;
  std::vector<std::string> notes;
  (void)ome_channels((*image)->omero, notes);
  for (const OmeVersion version : {OmeVersion::v0_4, OmeVersion::v0_5}) {
    const auto written = ome_attributes(**image, version, "group");
    if (!written) continue;
    const auto again = fuzz::expect(parse_ome_image(*written, "group"), "parsing again");
    fuzz::require(again.has_value() && again->multiscales.size() == (*image)->multiscales.size(),
                  "the number of images has changed");
    for (std::size_t i = 0; i < again->multiscales.size(); ++i) {
      const OmeMultiscale &a = (*image)->multiscales[i], &b = again->multiscales[i];
      fuzz::require(a.axes == b.axes && a.levels.size() == b.levels.size(), "axes or levels have changed");
      for (std::size_t k = 0; k < a.levels.size(); ++k) {
        fuzz::require(a.levels[k].path == b.levels[k].path && a.levels[k].scale == b.levels[k].scale &&
                          a.levels[k].translation == b.levels[k].translation,
                      "a level has changed");
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = parse_json(fuzz::as_text(data, size));
  if (!json) return 0;
  check_array(*json);
  check_image(*json);
  if (json->is_object() && json->contains("attributes")) check_image((*json)["attributes"]);
  return 0;
}
