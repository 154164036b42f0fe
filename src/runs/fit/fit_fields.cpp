#include "runs/fit/fit_fields.hpp"

#include <utility>

namespace cingulum {

RequestTable<FitRequest> fit_fields() {
  static const std::vector<RequestField<FitRequest>> rows = [] {
    std::vector<RequestField<FitRequest>> table;
    table.push_back({&FitRequest::dwi,
                     Phase::input,
                     {.name = "dwi",
                      .type = ArgumentType::file_in,
                      .help = "diffusion series, NIfTI; required unless --from repeats a run",
                      .metavar = "DWI",
                      .positional = true}});
    table.push_back(
        {&FitRequest::bvals, Phase::input, {.name = "bvals", .type = ArgumentType::file_in, .help = "b-values, FSL"}});
    table.push_back({&FitRequest::bvecs,
                     Phase::input,
                     {.name = "bvecs", .type = ArgumentType::file_in, .help = "b-vectors, FSL, in rows or columns"}});
    table.push_back(
        {&FitRequest::grad,
         Phase::input,
         {.name = "grad", .type = ArgumentType::file_in, .help = "gradient table of MRtrix3 instead of both"}});
    table.push_back(
        {&FitRequest::bvec_frame,
         Phase::input,
         {.name = "bvec-frame",
          .type = ArgumentType::choice,
          .help = "axes of the b-vectors: fsl (image axes, x negated when the determinant of the affine is positive), "
                  "voxel (image axes), world (scanner axes), auto (the one with the most coherent fibres). A table of "
                  "--grad is world, FSL files are fsl unless said otherwise",
          .choices = {"fsl", "voxel", "world", "auto"}}});
    table.push_back({&FitRequest::mask,
                     Phase::input,
                     {.name = "mask", .type = ArgumentType::file_in, .help = "brain mask, NIfTI, voxels above zero"}});
    table.push_back({&FitRequest::model,
                     Phase::field,
                     {.name = "model",
                      .type = ArgumentType::choice,
                      .help = "what to fit; required unless --from repeats a run",
                      .choices = {"dti", "opdt", "csa", "csd"}}});
    table.push_back({&FitRequest::out,
                     Phase::destination,
                     {.name = "out",
                      .type = ArgumentType::text,
                      .help = "folder for the results, made where it is not there",
                      .metavar = "DIR",
                      .required = true}});
    table.push_back({&FitRequest::b0_threshold,
                     Phase::input,
                     {.name = "b0-threshold",
                      .type = ArgumentType::real,
                      .help = "volumes up to this b-value are b0",
                      .unit = "s/mm^2",
                      .range = {.minimum = 0},
                      .default_text = "50"}});
    table.push_back(
        {&FitRequest::shell,
         Phase::input,
         {.name = "shell",
          .type = ArgumentType::real,
          .help = "b-value of the shell to use, with the b0 volumes; by default all for dti, the highest otherwise",
          .unit = "s/mm^2",
          .range = {.minimum = 0, .above = true}}});
    table.push_back(
        {&FitRequest::sh_order,
         Phase::field,
         {.name = "sh-order",
          .type = ArgumentType::integer,
          .help = "even degree of the spherical harmonics: 8 for csd, 4 for opdt and csa; lowered with a warning when "
                  "the directions do not suffice",
          .range = {.minimum = 0, .maximum = 12}}});
    table.push_back({&FitRequest::sh_basis,
                     Phase::output,
                     {.name = "sh-basis",
                      .type = ArgumentType::choice,
                      .help = "convention of the spherical harmonics",
                      .default_text = "tournier07",
                      .choices = {"tournier07", "descoteaux07", "descoteaux07-legacy"}}});
    table.push_back(
        {&FitRequest::frame,
         Phase::output,
         {.name = "frame",
          .type = ArgumentType::choice,
          .help = "axes of coefficients, tensors and directions; world for tournier07 and for tensors in the order of "
                  "mrtrix, otherwise image",
          .choices = {"image", "world"}}});
    table.push_back(
        {&FitRequest::min_signal,
         Phase::field,
         {.name = "min-signal",
          .type = ArgumentType::text,
          .help = "smaller signals of dti, opdt and csa count as this: a share of the median b0 in the mask, or a bare "
                  "number in units of the data (DIPY: 1e-5 for opdt and csa)",
          .metavar = "X|X%",
          .default_text = "0.1%"}});
    table.push_back({&FitRequest::sm_lambda,
                     Phase::field,
                     {.name = "sm-lambda",
                      .type = ArgumentType::real,
                      .help = "Laplace-Beltrami smoothing of opdt and csa",
                      .range = {.minimum = 0},
                      .default_text = "0.006"}});
    add_response_parameters(table);
    table.push_back({&FitRequest::csd_lambda,
                     Phase::field,
                     {.name = "csd-lambda",
                      .type = ArgumentType::real,
                      .help = "weight of the constraint of csd",
                      .range = {.minimum = 0},
                      .default_text = "1"}});
    table.push_back({&FitRequest::csd_tau,
                     Phase::field,
                     {.name = "csd-tau",
                      .type = ArgumentType::real,
                      .help = "amplitudes below this share of their mean are constrained",
                      .range = {.minimum = 0},
                      .default_text = "0.1"}});
    table.push_back({&FitRequest::csd_iterations,
                     Phase::field,
                     {.name = "csd-iterations",
                      .type = ArgumentType::integer,
                      .help = "at most this many iterations per voxel",
                      .range = {.minimum = 1, .maximum = 10000},
                      .default_text = "50"}});
    table.push_back({&FitRequest::csd_sphere,
                     Phase::field,
                     {.name = "csd-sphere",
                      .type = ArgumentType::text,
                      .help = "directions of the constraint: a sphere by name, or a file with 'x y z' per line",
                      .metavar = sphere_metavar,
                      .default_text = "repulsion362"}});
    table.push_back({&FitRequest::sphere,
                     Phase::output,
                     {.name = "sphere",
                      .type = ArgumentType::text,
                      .help = "sphere of --odf and --peaks",
                      .metavar = sphere_metavar,
                      .default_text = "default"}});
    table.push_back(
        {&FitRequest::full_sphere,
         Phase::output,
         {.name = "full-sphere", .type = ArgumentType::flag, .help = "the whole sphere rather than one half"}});
    table.push_back(
        {&FitRequest::odf,
         Phase::output,
         {.name = "odf", .type = ArgumentType::flag, .help = "write amplitudes on the sphere, odf.nii.gz"}});
    table.push_back(
        {&FitRequest::keep_negative,
         Phase::output,
         {.name = "keep-negative", .type = ArgumentType::flag, .help = "do not raise negative amplitudes to zero"}});
    table.push_back({&FitRequest::peaks,
                     Phase::output,
                     {.name = "peaks",
                      .type = ArgumentType::integer,
                      .help = "write this many peaks per voxel, peaks.nii.gz: 3 volumes each",
                      .range = {.minimum = 0, .maximum = 100},
                      .default_text = "0"}});
    table.push_back({&FitRequest::relative_peak_threshold,
                     Phase::field,
                     {.name = "relative-peak-threshold",
                      .type = ArgumentType::real,
                      .help = "smallest peak, as a share of the greatest",
                      .range = {.minimum = 0, .maximum = 1},
                      .default_text = "0.25"}});
    table.push_back({&FitRequest::min_separation_angle,
                     Phase::field,
                     {.name = "min-separation-angle",
                      .type = ArgumentType::angle,
                      .help = "smallest angle between peaks",
                      .range = {.minimum = 0, .maximum = 90},
                      .default_text = "25"}});
    table.push_back({&FitRequest::fit_method,
                     Phase::field,
                     {.name = "fit-method",
                      .type = ArgumentType::choice,
                      .help = "least squares of dti: ordinary or weighted",
                      .default_text = "wls",
                      .choices = {"ols", "wls"}}});
    table.push_back({&FitRequest::tensor_order,
                     Phase::output,
                     {.name = "tensor-order",
                      .type = ArgumentType::choice,
                      .help = "mrtrix: Dxx Dyy Dzz Dxy Dxz Dyz; dipy: lower triangle; fsl: upper triangle",
                      .default_text = "mrtrix",
                      .choices = {"mrtrix", "dipy", "fsl"}}});
    table.push_back({&FitRequest::from,
                     Phase::recipe,
                     {.name = "from",
                      .type = ArgumentType::file_in,
                      .help = "repeat the run of a folder (DIR/fit.json); options given beside it take precedence",
                      .metavar = "FILE"}});
    table.push_back({&FitRequest::device, Phase::machine, device_argument()});
    return table;
  }();
  return rows;
}

}  // namespace cingulum
