// `cingulum fit`: models of the diffusion signal in every voxel of a mask.
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/elapsed.hpp"
#include "base/json_text.hpp"
#include "cli/fit_arguments.hpp"
#include "cli/fit_input.hpp"
#include "cli/fit_models.hpp"
#include "cli/fit_place.hpp"
#include "cli/verb.hpp"
#include "dmri/models/fit_folder.hpp"
#include "formats/sidecar.hpp"

namespace cingulum {

Verb fit_verb();

namespace {

using Json = nlohmann::ordered_json;

Status run_fit(const ParsedArguments& arguments, VerbContext& context) {
  const auto start = std::chrono::steady_clock::now();
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  CGL_TRY_ASSIGN(FitPlace place, FitPlace::begin(context));
  CGL_TRY_ASSIGN(FitFolder folder, FitFolder::create(arguments.text("out"), context.write_options()));
  const GivenArrays no_arrays;
  FitRun run = {
      .arguments = arguments, .context = context, .pool = *pool, .maps = folder, .arrays = no_arrays, .place = place};
  CGL_TRY_ASSIGN(const FitInput input, read_fit_input(run));
  CGL_TRY(fit_model(run, input));
  const double seconds = seconds_since(start);
  Json facts = run_facts(context.common().threads, seconds);
  facts["device"] = place.name();
  CGL_TRY(folder.finish(run.results, facts));
  if (context.common().json) {
    const Json json = {
        {"out", folder.path().string()}, {"model", input.model},   {"voxels", input.signals.voxels.size()},
        {"parameters", run.parameters},  {"results", run.results}, {"files", folder.files()},
        {"warnings", run.warnings}};
    context.print(json_text(json));
  } else {
    for (const Json& file : folder.files()) {
      context.print_format("{}  {}\n", (folder.path() / file["file"].get<std::string>()).string(),
                           file["meaning"].get<std::string>());
    }
  }
  context.leave_process();
  return {};
}

}  // namespace

Verb fit_verb() {
  return {
      .name = "fit",
      .summary = "fit a model of the diffusion signal in every voxel",
      .description =
          "Fits tensors (dti), orientation distributions (opdt, csa) or fibre orientation distributions by constrained "
          "spherical deconvolution (csd) to a diffusion series and writes NIfTI images, each with a JSON sidecar, into "
          "a folder. fit.json is written last: a folder without it is not complete.\n\n"
          "dti uses all volumes, the other models one shell: the highest, or --shell. Without --mask a brain mask is "
          "made by median Otsu and written too.\n\n"
          "Spherical harmonics are written in --sh-basis and --frame; both stand in the sidecar. The defaults are what "
          "MRtrix3 reads.\n\n"
          "The models are fitted on the CPU or on a GPU of CUDA, to the same bits: the files do not depend on "
          "--device.",
      .arguments = fit_arguments(),
      .common = {CommonOption::device, CommonOption::threads, CommonOption::force, CommonOption::json,
                 CommonOption::progress},
      .examples =
          {{"cingulum fit dwi.nii.gz --bvals dwi.bval --bvecs dwi.bvec --mask mask.nii.gz --model csd --out csd",
            "fibre orientation distributions, readable by MRtrix3"},
           {"cingulum fit dwi.nii.gz --bvals dwi.bval --bvecs dwi.bvec --model dti --shell 1000 --out dti",
            "tensors from the b0 volumes and one shell, in a mask that is made"}},
      .references =
          {"Basser, Mattiello, LeBihan: Estimation of the effective self-diffusion tensor from the NMR spin "
           "echo. J. Magn. Reson. B 103, 1994",
           "Tournier, Calamante, Connelly: Robust determination of the fibre orientation distribution in "
           "diffusion MRI. NeuroImage 35, 2007",
           "Tristan-Vega, Westin, Aja-Fernandez: A new methodology for the estimation of fiber populations in "
           "the white matter of the brain with the Funk-Radon transform. NeuroImage 49, 2010",
           "Aganj et al.: Reconstruction of the orientation distribution function in single- and "
           "multiple-shell q-ball imaging within constant solid angle. Magn. Reson. Med. 64, 2010"},
      .run = run_fit,
  };
}

}  // namespace cingulum
