#include "runs/layout_parameters.hpp"

#include "base/argument_name.hpp"
#include "formats/output_sidecar.hpp"

namespace cingulum {

std::vector<Argument> layout_arguments() {
  return {{.name = "float16",
           .type = ArgumentType::flag,
           .help = "positions in half precision (TRX): 0.06 mm apart at 100 mm, half the size, for display"},
          {.name = "float64", .type = ArgumentType::flag, .help = "positions in double precision (TRX, TCK)"},
          {.name = "deflate",
           .type = ArgumentType::flag,
           .help = "compress the arrays of a TRX archive: smaller and slower; readers hold such a file in memory"}};
}

Status check_layout_options(const LayoutParameters& parameters, TractogramFormat format,
                            const std::filesystem::path& out) {
  if (parameters.float16.value() && parameters.float64.value()) {
    return fail(ErrorKind::invalid_argument, "{} and {} exclude each other", argument_name("float16"),
                argument_name("float64"));
  }
  const bool trx = format == TractogramFormat::trx || format == TractogramFormat::trx_folder;
  if (parameters.float16.value() && !trx) {
    return fail(ErrorKind::invalid_argument, "{}: {} has no place for it; only TRX holds float16",
                argument_name("float16"), out.string());
  }
  if (parameters.float64.value() && format == TractogramFormat::trk) {
    return fail(ErrorKind::invalid_argument, "{}: {} has no place for it; TRK holds float32 only",
                argument_name("float64"), out.string());
  }
  if (parameters.deflate.value() && format != TractogramFormat::trx) {
    return fail(ErrorKind::invalid_argument, "{}: {} is not compressed; only a TRX archive (.trx) is",
                argument_name("deflate"), out.string());
  }
  return {};
}

Status check_tractogram_output(const std::filesystem::path& path, TractogramFormat format,
                               const WriteOptions& options) {
  CGL_TRY(check_sidecar_output(path, options));
  if (format != TractogramFormat::trx_folder) return check_output(path, options);
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored)) || options.force) return {};
  return fail(ErrorKind::already_exists, "writing {}: it exists; use {} to replace it", path.native(),
              argument_name("force"));
}

std::optional<ElementType> asked_position_type(const LayoutParameters& parameters) {
  if (parameters.float16.value()) return ElementType{ElementType::Code::floating, 16};
  if (parameters.float64.value()) return element_type_of<double>();
  return std::nullopt;
}

}  // namespace cingulum
