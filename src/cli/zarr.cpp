// `cingulum zarr`: arrays of Zarr and images of OME-Zarr. `info` shows them, `copy` writes them in another layout,
// `verify` reads every chunk, `bench` measures how they reach a device.
#include <system_error>

#include "cli/verb.hpp"
#include "cli/zarr_actions.hpp"

namespace cingulum {

Verb zarr_verb();

namespace {

Status run_zarr(const ParsedArguments& arguments, VerbContext& context) {
  const std::string& action = arguments.text("action");
  const std::vector<std::string> paths = arguments.texts("paths");
  if (paths.empty() && action != "bench") {
    return fail(ErrorKind::invalid_argument, "cingulum zarr {}: name a Zarr folder or archive", action);
  }
  // The last path of a copy is made, and what a bench generates.
  std::size_t inputs = action == "copy" ? std::min<std::size_t>(1, paths.size()) : paths.size();
  if (arguments.given("generate")) inputs = 0;
  for (std::size_t i = 0; i < inputs; ++i) {
    std::error_code error;
    if (std::filesystem::exists(paths[i], error)) continue;
    return fail(ErrorKind::invalid_argument, "PATH '{}': no such file or folder", paths[i]);
  }
  if (action == "info") return run_zarr_info(arguments, context);
  if (action == "copy") return run_zarr_copy(arguments, context);
  if (action == "verify") return run_zarr_verify(arguments, context);
  return run_zarr_bench(arguments, context);
}

}  // namespace

Verb zarr_verb() {
  return {
      .name = "zarr",
      .summary = "show, copy, verify and measure Zarr arrays and OME-Zarr images",
      .description =
          "A path is a folder or a zip archive that holds a Zarr array or hierarchy, of version 2 or 3.\n\n"
          "`info` shows what is in it: of each array size, chunks, shards, type, codecs, fill value, stored bytes, how "
          "many chunks are missing and whether a checksum protects them; of an OME-Zarr image (0.4, 0.5, 0.6) axes, "
          "units, the true scale and place of each level, and channels. --explain says by which ways its elements can "
          "reach a device, and why not by others.\n\n"
          "`copy SOURCE DESTINATION` writes an array, an image or a whole hierarchy anew: by default Zarr v3 with "
          "chunks of about 1 MiB in shards of about 64 MiB, stored as they are with a checksum. A destination whose "
          "name ends with .zip is an archive. Attributes, fill values and names of dimensions are kept; metadata of "
          "OME-Zarr are rewritten for the version. A part (--crop) or a pyramid (--pyramid) makes all coarser levels "
          "anew. The destination gets its name when it is complete, with a sidecar DESTINATION.json beside it, and its "
          "bytes do not depend on the number of threads.\n\n"
          "`verify` reads and decodes every chunk, compares every checksum in it, around it (zip) and beside it "
          "(sidecar), and names each damaged chunk with its file and the cause. Chunks that are missing are legal and "
          "counted; --complete makes them a failure.\n\n"
          "`bench` measures how fast an array reaches a device, by every engine, from a cold and a warm cache.",
      .arguments =
          {
              {.name = "action",
               .type = ArgumentType::choice,
               .help = "what to do",
               .metavar = "ACTION",
               .choices = {"info", "copy", "verify", "bench"},
               .positional = true,
               .required = true},
              {.name = "paths",
               .type = ArgumentType::text,
               .help = "Zarr folders or archives; of copy the source and the destination",
               .metavar = "PATH",
               .positional = true,
               .repeatable = true},
              {.name = "path",
               .type = ArgumentType::text,
               .help = "the group or array inside, such as 0 or labels/cells",
               .metavar = "NODE",
               .actions = {"info", "copy", "bench"}},
              {.name = "chunks",
               .type = ArgumentType::text,
               .help = "extents of the chunks, as 64,64,64; one number stands for all dimensions",
               .metavar = "N,N,...",
               .actions = {"copy"}},
              {.name = "shards",
               .type = ArgumentType::text,
               .help = "extents of the shards, multiples of the chunks, or none",
               .metavar = "N,N,...|none",
               .actions = {"copy"}},
              {.name = "codec",
               .type = ArgumentType::text,
               .help = "none, zstd, gzip, zlib, bz2, lz4, blosc-lz4, blosc-zstd, ..., with a level as zstd:5",
               .metavar = "CODEC",
               .default_note = "none (v3), zstd (v2)",
               .actions = {"copy", "bench"}},
              {.name = "format",
               .type = ArgumentType::choice,
               .help = "version of Zarr to write",
               .default_note = "3",
               .choices = {"2", "3"},
               .actions = {"copy", "bench"}},
              {.name = "ome-version",
               .type = ArgumentType::choice,
               .help = "version of OME-Zarr to write; a bare array becomes an image",
               .default_note = "0.5, in Zarr v2 0.4",
               .choices = {"0.4", "0.5"},
               .actions = {"copy"}},
              {.name = "crop",
               .type = ArgumentType::text,
               .help = "a part, as a range a dimension: 0:64,:,100:200 (of an image: of its finest level)",
               .metavar = "RANGES",
               .actions = {"copy"}},
              {.name = "pyramid",
               .type = ArgumentType::text,
               .help = "so many levels in all, or auto: until a level is one chunk; a bare array becomes an image",
               .metavar = "N|auto",
               .actions = {"copy"}},
              {.name = "downsampling",
               .type = ArgumentType::choice,
               .help = "how levels are made of finer ones",
               .default_note = "nearest for labels, else mean",
               .choices = {"mean", "nearest"},
               .actions = {"copy"}},
              {.name = "scale",
               .type = ArgumentType::text,
               .help = "of an array that becomes an image, the distance of elements along each dimension",
               .metavar = "X,X,...",
               .actions = {"copy"}},
              {.name = "unit",
               .type = ArgumentType::text,
               .help = "of an array that becomes an image, the unit of space, such as micrometer",
               .metavar = "WORD",
               .actions = {"copy"}},
              {.name = "window",
               .type = ArgumentType::flag,
               .help = "find the window for viewers anew: from 1 % to 99.9 % of the values",
               .actions = {"copy"}},
              {.name = "memory",
               .type = ArgumentType::bytes,
               .help = "of elements held at a time; one shard at least",
               .default_text = "256M",
               .actions = {"copy"}},
              {.name = "complete",
               .type = ArgumentType::flag,
               .help = "a chunk that is not stored is a failure",
               .actions = {"copy", "verify"}},
              {.name = "verify",
               .type = ArgumentType::flag,
               .help = "read everything and compare every checksum",
               .actions = {"info"}},
              {.name = "require",
               .type = ArgumentType::flag,
               .help = "data without a checksum are a failure",
               .actions = {"verify"}},
              {.name = "explain",
               .type = ArgumentType::flag,
               .help = "by which ways (engines) the first array can reach --device, and why not by others",
               .actions = {"info"}},
              {.name = "engine",
               .type = ArgumentType::choice,
               .help = "measure this way to the device alone; one that is not possible is refused",
               .default_text = "auto",
               .choices = {"auto", "host", "direct", "nvcomp"},
               .actions = {"bench"}},
              {.name = "generate",
               .type = ArgumentType::bytes,
               .help = "first make an array of so many bytes of noise at PATH, where nothing is",
               .metavar = "BYTES",
               .actions = {"bench"}},
              {.name = "repetitions",
               .type = ArgumentType::integer,
               .help = "of each measurement",
               .metavar = "N",
               .range = {.minimum = 1.0, .maximum = 1000.0},
               .default_text = "5",
               .actions = {"bench"}},
              {.name = "warm-only",
               .type = ArgumentType::flag,
               .help = "leave the cold cache out",
               .actions = {"bench"}},
              {.name = "peers",
               .type = ArgumentType::text,
               .help = "measure zarr-python and tensorstore, too, by this Python",
               .metavar = "PYTHON",
               .actions = {"bench"}},
          },
      .common = {CommonOption::device, CommonOption::threads, CommonOption::force, CommonOption::json,
                 CommonOption::progress},
      .examples = {{"cingulum zarr info scan.ome.zarr", "levels, scales, chunks, checksums"},
                   {"cingulum zarr copy scan.zarr fast.ome.zarr --pyramid auto --scale 3.5,10,10 --unit micrometer",
                    "a bare array as an image with levels"},
                   {"cingulum zarr copy volume.ome.zarr part.ome.zarr.zip --crop 0:128,:,: --codec zstd",
                    "a part, compressed, in one file"},
                   {"cingulum zarr copy new.ome.zarr old.ome.zarr --ome-version 0.4",
                    "for programs that read Zarr v2 alone"},
                   {"cingulum zarr verify --complete *.zarr", "before they are archived"},
                   {"cingulum zarr bench speed.zarr --generate 1G --device cpu", "how fast an array is read here"}},
      .references = {"Zarr specification, version 3, https://zarr-specs.readthedocs.io",
                     "Moore et al. 2023, OME-Zarr: a cloud-optimized bioimaging file format, Histochem Cell Biol "
                     "160:223-251"},
      .run = run_zarr,
  };
}

}  // namespace cingulum
