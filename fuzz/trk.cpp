// TRK: header and records.
#include "formats/trk.hpp"

#include "formats/trx.hpp"
#include "fuzz/tractogram_round_trip.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cingulum;
  auto reader = open_trk("input", fuzz::copy_of(fuzz::as_bytes(data, size)));
  if (!reader) return 0;
  const bool walks = (*reader)->verify().has_value();
  auto whole = read_tractogram(**reader, 3, false);
  fuzz::require(walks == whole.has_value(), "verify and the reader disagree");
  if (!whole || fuzz::bytes_of(whole->streamlines) > fuzz::most_bytes_to_write) return 0;
  const TractogramLayout layout = whole->layout;
  // TRX with doubles holds everything; its names are stricter.
  auto rename = [](std::vector<DataField>& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) fields[i].name = "f" + std::to_string(i);
  };
  rename(whole->layout.point_fields);
  rename(whole->layout.streamline_fields);
  whole->layout.format = TractogramFormat::trx;
  whole->layout.position_type = element_type_of<double>();
  const auto trx = fuzz::write_whole(*whole, whole->layout, "/again.trx");
  auto again = fuzz::expect(open_trx("again", fuzz::copy_of(trx)), "reading again");
  fuzz::require_same(*whole, fuzz::expect(read_tractogram(*again, 1000, false), "reading again"));

  // Names that the header cannot hold once more (made unique, or "scalars" for the rest) do not come back.
  for (const auto* fields : {&layout.point_fields, &layout.streamline_fields}) {
    if (fields->size() > trk_most_fields) return 0;
    for (const DataField& field : *fields) {
      if (!check_trk_field(field)) return 0;
    }
  }
  whole->layout = layout;
  const auto trk = fuzz::write_whole(*whole, layout, "/again.trk");
  auto third = fuzz::expect(open_trk("again", fuzz::copy_of(trk)), "reading again");
  auto read = fuzz::expect(read_tractogram(*third, 1000, false), "reading again");
  // Positions go through another affine here; bit for bit they are compared by the tests.
  fuzz::require(read.streamlines.positions64.size() == whole->streamlines.positions64.size(), "points have changed");
  read.streamlines.positions64 = whole->streamlines.positions64;
  fuzz::require_same(*whole, read);
  return 0;
}
