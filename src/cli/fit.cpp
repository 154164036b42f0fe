// `cingulum fit`: its arguments become a FitRequest, a call runs it (runs/fit/fit_run.hpp), and the result is printed.
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "cli/request_arguments.hpp"
#include "cli/verb.hpp"
#include "runs/fit/fit_fields.hpp"
#include "runs/fit/fit_run.hpp"

namespace cingulum {

Verb fit_verb();

namespace {

using Json = nlohmann::ordered_json;

// --device is an option of many verbs.
bool is_common(const RequestField<FitRequest>& field) {
  return field.argument.name == "device";
}

Status run_fit(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const FitOutcome outcome, fit(request_of_arguments(fit_fields(), arguments), context));
  if (context.common().json) {
    const Json json = {{"out", outcome.folder.string()},   {"model", outcome.model},     {"voxels", outcome.voxels},
                       {"parameters", outcome.parameters}, {"results", outcome.results}, {"files", outcome.files},
                       {"warnings", outcome.warnings}};
    context.print(json_text(json));
  } else {
    for (const Json& file : outcome.files) {
      context.print_format("{}  {}\n", (outcome.folder / file["file"].get<std::string>()).string(),
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
          "a folder. fit.json is written last: a folder without it is not complete. It holds every parameter and the "
          "hashes of "
          "the inputs; --from repeats its run to the bit, and refuses inputs that have changed.\n\n"
          "dti uses all volumes, the other models one shell: the highest, or --shell. Without --mask a brain mask is "
          "made by median Otsu and written too.\n\n"
          "Spherical harmonics are written in --sh-basis and --frame; both stand in the sidecar. The defaults are what "
          "MRtrix3 reads.\n\n"
          "The models are fitted on the CPU or on a GPU of CUDA, to the same bits: the files do not depend on "
          "--device.",
      .arguments = arguments_of_table(fit_fields(), is_common),
      .common = {CommonOption::device, CommonOption::threads, CommonOption::force, CommonOption::json,
                 CommonOption::progress},
      .examples =
          {{"cingulum fit dwi.nii.gz --bvals dwi.bval --bvecs dwi.bvec --mask mask.nii.gz --model csd --out csd",
            "fibre orientation distributions, readable by MRtrix3"},
           {"cingulum fit dwi.nii.gz --bvals dwi.bval --bvecs dwi.bvec --model dti --shell 1000 --out dti",
            "tensors from the b0 volumes and one shell, in a mask that is made"},
           {"cingulum fit --from csd/fit.json --out again", "the same run again, to the bit"}},
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
