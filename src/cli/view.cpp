// `cingulum view`: the server of the live viewer with what it was given. The server itself is view/view_server.hpp, the
// streamlines come from view_live.
#include <spawn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/interrupt.hpp"
#include "base/json_text.hpp"
#include "base/log.hpp"
#include "base/option_name.hpp"
#include "base/settings.hpp"
#include "base/shell_word.hpp"
#include "base/thread_pool.hpp"
#include "base/version.hpp"
#include "cli/command_line.hpp"
#include "cli/request_arguments.hpp"
#include "cli/verb.hpp"
#include "runs/track/track_fields.hpp"
#include "view/line_values.hpp"
#include "view/live_tracks.hpp"
#include "view/shown_lines.hpp"
#include "view/view_export.hpp"
#include "view/view_files.hpp"
#include "view/view_server.hpp"

extern char** environ;

namespace cingulum {

Verb view_verb();
Verb phantom_verb();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What of a request says what is tracked and how it becomes a field; the series is a file among others here.
bool is_of_field(const TrackField& field) {
  const bool makes_field = field.phase == Phase::input || field.phase == Phase::field || field.traits.makes_field;
  return makes_field && field.argument.name != "data";
}

// What each streamline of a file has a number for. Of a file that cannot be read nothing: it is said when it is shown.
Json columns_of(const view::ViewFile& file) {
  Json list = Json::array();
  const auto columns = view::columns_of_lines(file.path);
  if (!columns) {
    log_warning("{}", columns.error());
    return list;
  }
  for (const view::LineColumn& column : *columns) {
    Json entry = {{"name", column.name}};
    if (!column.groups.empty()) entry["groups"] = column.groups;
    list.push_back(std::move(entry));
  }
  return list;
}

// What the pages are served.
class GivenHost final : public view::ViewHost {
 public:
  // `background`: the identifier of the image behind what is tracked; empty: none.
  GivenHost(std::vector<view::ViewFile> files, std::unique_ptr<LiveTracks> live, std::string live_error,
            const std::string& background)
      : files_(std::move(files)), live_(std::move(live)) {
    Json list = Json::array();
    for (const view::ViewFile& file : files_) {
      Json entry = {{"id", file.id}, {"name", file.name}, {"kind", file.kind}, {"bytes", file.bytes}};
      if (file.kind == "tractogram") entry["columns"] = columns_of(file);
      list.push_back(std::move(entry));
    }
    Json json = {{"version", Json::parse(version_json(), nullptr, false).value("version", "")},
                 {"files", std::move(list)}};
    json["live"] = live_ ? live_->facts() : Json();
    if (live_ && !background.empty()) json["live"]["image"] = background;
    json["live_error"] = live_error.empty() ? Json() : Json(std::move(live_error));
    json_ = json_text(json);
  }

  [[nodiscard]] std::string files_json() const override { return json_; }
  [[nodiscard]] const view::ViewFile* find_file(std::string_view id) const override {
    const auto found = std::find_if(files_.begin(), files_.end(), [&](const auto& file) { return file.id == id; });
    return found == files_.end() ? nullptr : &*found;
  }
  [[nodiscard]] Status answer(const view::LiveRequest& request, std::uint32_t page, const CancelToken& cancel,
                              const view::LiveSend& send) override {
    if (!live_) return nothing_to_track();
    return live_->answer(request, page, cancel, send);
  }
  [[nodiscard]] Result<view::SavedRun> save(const std::vector<ArgumentText>& asked,
                                            const CancelToken& cancel) override {
    if (!live_) return nothing_to_track();
    return live_->save(asked, cancel);
  }
  [[nodiscard]] Result<std::vector<std::byte>> lines(const view::ViewFile& file, std::uint64_t number) override {
    if (!shown_lines_) {
      // A pool of its own: the others may be tracking.
      CGL_TRY_ASSIGN(lines_pool_, ThreadPool::create(default_thread_count()));
      shown_lines_.emplace(lines_pool_.get());
    }
    return shown_lines_->message(file.path, number);
  }
  [[nodiscard]] Result<std::vector<std::byte>> glyphs(int axis, double mm) override {
    if (!live_) return nothing_to_track();
    return live_->glyphs(axis, mm);
  }
  [[nodiscard]] Result<std::vector<std::byte>> peaks(int axis, double mm) override {
    if (!live_) return nothing_to_track();
    return live_->peaks(axis, mm);
  }
  [[nodiscard]] Result<std::vector<std::byte>> values(const view::ViewFile& file, std::size_t column) override {
    return view::values_of_lines(file.path, column);
  }
  [[nodiscard]] std::string describe(const Error& error) const override { return describe_failure(error); }

 private:
  static tl::unexpected<Error> nothing_to_track() {
    return fail(ErrorKind::unavailable, "there is nothing to track: give a diffusion series, or --sh, --sf or --peaks");
  }

  std::vector<view::ViewFile> files_;
  std::unique_ptr<LiveTracks> live_;
  std::unique_ptr<ThreadPool> lines_pool_;
  std::optional<view::ShownLines> shown_lines_;
  std::string json_;
};

// The phantom of a viewer without data, in its scratch folder; the command that makes the same stands before others.
Status make_view_phantom(const fs::path& scratch, VerbContext& context, LiveSource& source,
                         std::vector<view::ViewFile>& files) {
  const std::string name = "crossing-phantom";
  const std::string folder = (scratch / name).string();
  log_info("no data given: showing the phantom `crossing`");
  const Verb verb = phantom_verb();
  const std::vector<std::string> words = {"--preset", "crossing", "--voxel-size", "2.5"};
  std::vector<std::string> all = words;
  all.insert(all.end(), {"--out", folder});
  CGL_TRY_ASSIGN(const ParsedArguments arguments, parse_command_line(verb, all));
  CommonValues common = context.common();
  common.json = false;
  VerbContext silent(
      context.verbs(), context.settings(), std::move(common), [](std::string_view) {}, 80, context.log());
  CGL_TRY(verb.run(arguments, silent));
  CGL_TRY_ASSIGN(files, find_view_files({folder}));
  source.data = {folder + "/dwi.nii.gz"};
  source.name = "dwi.nii.gz";
  source.hidden_folder = scratch.string() + "/";
  source.options.push_back({"mask", {folder + "/mask.nii.gz"}, false});
  source.before = "cingulum phantom";
  for (const std::string& word : words) source.before += " " + word;
  source.before += " --out " + name + " && ";
  return {};
}

// What of the command line is tracked: a file named by an option, or the first series.
Result<LiveSource> find_live_source(const ParsedArguments& arguments, std::vector<view::ViewFile>& files) {
  LiveSource source;
  const TrackRequest request = request_of_arguments(track_fields(), arguments);
  source.options = given_texts(track_fields(), request, is_of_field);
  for (const Parameter<std::string>* const image : {&request.sf, &request.sh, &request.peaks, &request.tensor}) {
    if (!image->given()) continue;
    if (!source.name.empty()) {
      return fail(ErrorKind::invalid_argument, "--sf, --sh, --peaks and --tensor exclude each other");
    }
    const fs::path path = image->value();
    source.name = path.filename().string();
    std::error_code ignored;
    files.push_back({.id = fmt::format("f{}", files.size() + 1),
                     .name = source.name,
                     .kind = "image",
                     .path = path,
                     .bytes = fs::file_size(path, ignored)});
  }
  if (!source.name.empty()) return source;
  for (const view::ViewFile& file : files) {
    if (file.kind != "series") continue;
    source.data = {file.path.string()};
    source.name = file.name;
    break;
  }
  return source;
}

// The folder of a phantom, where what is tracked lies in one.
fs::path truth_beside(const LiveSource& source) {
  fs::path tracked = source.data.empty() ? fs::path() : fs::path(source.data.front());
  for (const ArgumentText& option : source.options) {
    if (option.name == "sh" || option.name == "sf" || option.name == "peaks" || option.name == "tensor") {
      tracked = option.texts.front();
    }
  }
  std::error_code ignored;
  const fs::path folder = tracked.parent_path().empty() ? "." : tracked.parent_path();
  return !tracked.empty() && fs::exists(folder / "phantom.json", ignored) ? folder : fs::path();
}

// A series is no picture: of each its volume with the smallest b-value, in the scratch folder. Answers the identifier
// of the one that belongs to `tracked`.
std::string add_series_images(const fs::path& scratch, const std::string& tracked, std::vector<view::ViewFile>& files) {
  std::string background;
  for (std::size_t i = 0, count = files.size(); i < count; ++i) {
    if (files[i].kind != "series") continue;
    auto image = series_image(files[i], scratch);
    if (!image) {
      log_warning("{}", image.error());
      continue;
    }
    image->id = fmt::format("f{}", files.size() + 1);
    if (files[i].path.string() == tracked) background = image->id;
    files.push_back(std::move(*image));
  }
  return background;
}

void open_browser(const std::string& link) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return;
  std::string program = "xdg-open", word = link;
  char* const words[] = {program.data(), word.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawnp(&child, program.c_str(), nullptr, nullptr, words, environ) != 0) {
    log_info("no browser could be opened; open the link yourself");
  }
}

Status run_view(const ParsedArguments& arguments, VerbContext& context) {
  std::optional<FolderOutput> folder;
  if (arguments.given("export")) {
    for (const char* option : {"host", "port"}) {
      if (!arguments.given(option)) continue;
      return fail(ErrorKind::invalid_argument, "--{}: with --export there is no server", option);
    }
    CGL_TRY_ASSIGN(folder, begin_export(arguments.text("export"), context.write_options()));
  }
  CGL_TRY_ASSIGN(std::vector<view::ViewFile> files, find_view_files(arguments.texts("data")));
  CGL_TRY_ASSIGN(LiveSource source, find_live_source(arguments, files));
  CGL_TRY_ASSIGN(const ScratchFolder scratch, ScratchFolder::create());
  if (files.empty() && arguments.texts("data").empty()) {
    CGL_TRY(make_view_phantom(scratch.path(), context, source, files));
  }
  const std::string background =
      add_series_images(scratch.path(), source.data.empty() ? "" : source.data.front(), files);
  source.truth = truth_beside(source);
  source.one_field = folder.has_value();
  std::unique_ptr<LiveTracks> live;
  std::string live_error;
  if (!source.name.empty()) {
    auto opened = LiveTracks::open(std::move(source), scratch.path(), context);
    if (opened) {
      live = std::move(*opened);
    } else if (folder || opened.error().kind() == ErrorKind::invalid_argument ||
               opened.error().kind() == ErrorKind::interrupted) {
      return tl::make_unexpected(std::move(opened.error()));
    } else {
      // What can be shown is shown; the page says why there is nothing to track.
      live_error = with_option_names(opened.error());
      log_warning("{}", opened.error());
    }
  }
  if (folder) {
    const std::vector<view::ViewFile> all = files;
    std::optional<ExportedLive> exported;
    if (live) {
      CGL_TRY_ASSIGN(exported, live->exported());
    }
    GivenHost host(std::move(files), std::move(live), {}, background);
    CGL_TRY(write_export(*folder, host, all, exported));
    if (context.common().json) {
      context.print(json_text({{"folder", arguments.text("export")}}));
    } else {
      log_info("{0} is a viewer without a server; for one on this machine: python3 -m http.server -d {0}",
               shell_word(arguments.text("export")));
    }
    return {};
  }
  GivenHost host(std::move(files), std::move(live), std::move(live_error), background);
  view::ViewServerOptions options;
  if (arguments.given("host")) options.host = arguments.text("host");
  options.port = static_cast<std::uint16_t>(arguments.integer("port"));
  CGL_TRY_ASSIGN(const std::unique_ptr<view::ViewServer> server, view::ViewServer::listen(host, options));
  if (!options.host.empty() && options.host != "127.0.0.1" && options.host != "::1") {
    log_warning("--host {}: other machines can reach this server, and what it sends is not encrypted", options.host);
  }
  CGL_TRY_ASSIGN(const std::string link, server->make_link());
  if (context.common().json) {
    context.print(json_text({{"link", link}, {"port", server->port()}}));
  } else {
    context.print_format("{}\n", link);
    log_info("the link opens once; Ctrl-C ends the viewer");
  }
  std::fflush(stdout);  // whoever reads the link from a pipe waits for it now
  if (!arguments.flag("no-open")) open_browser(link);
  CGL_TRY(server->run(context.cancel()));
  // Ctrl-C is how a viewer ends.
  clear_interrupt();
  return {};
}

std::vector<Argument> view_arguments() {
  std::vector<Argument> list = {
      {.name = "data",
       .type = ArgumentType::file_in,
       .help = "images, diffusion series, tractograms, and folders of them; with none the phantom `crossing` is made. "
               "The first series (NAME.bval beside it) is fitted and tracked",
       .metavar = "FILE",
       .positional = true,
       .repeatable = true},
      {.name = "host",
       .type = ArgumentType::text,
       .help = "a numeric address of this machine by which others reach it, instead of this machine alone",
       .metavar = "ADDRESS"},
      {.name = "port",
       .type = ArgumentType::integer,
       .help = "0 is any that is free",
       .range = {.minimum = 0, .maximum = 65535},
       .default_text = "0"},
      {.name = "no-open", .type = ArgumentType::flag, .help = "print the link and open no browser"},
      {.name = "export",
       .type = ArgumentType::text,
       .help =
           "write the viewer into a new folder instead, for any web server: it tracks in the browser, by WebGPU, with "
           "the same bits; --field-precision half halves what is loaded",
       .metavar = "DIR"}};
  const auto left_out = [](const TrackField& field) { return !is_of_field(field); };
  for (Argument& argument : arguments_of_table(track_fields(), left_out)) list.push_back(std::move(argument));
  return list;
}

}  // namespace

Verb view_verb() {
  return {
      .name = "view",
      .summary = "look at images and tractograms in a browser, and track where one points",
      .description =
          "Starts a server for this machine alone and prints a link that opens once. A click on the image puts a "
          "sphere there, and its streamlines come while the mouse moves: the bytes that `cingulum track "
          "--seed-sphere` writes, with the command that writes them.\n\n"
          "A diffusion series is fitted first, with the options of `track` that are here; --sh, --sf, --peaks and "
          "--tensor track what is in a file. The field is prepared for thresholds from half of the one that holds. "
          "Everything stays on this machine.\n\n"
          "--export writes a folder that needs no server of ours. The page in it compares the bits of the browser's "
          "GPU with those of the CPU before it tracks, and says so where they differ. Whoever gets the folder has the "
          "field and the images.",
      .arguments = view_arguments(),
      .common = {CommonOption::threads, CommonOption::force, CommonOption::json, CommonOption::progress},
      .examples = {{"cingulum view", "a small phantom"},
                   {"cingulum view dwi.nii.gz --mask mask.nii.gz", "a series, fitted by CSD"},
                   {"cingulum view t1.nii.gz --sh fod.nii.gz --frame world",
                    "harmonics of another program over an image"},
                   {"cingulum view sub-01/ --no-open --port 8000", "a folder; the link is opened by hand"},
                   {"cingulum view dwi.nii.gz --mask mask.nii.gz --export shared", "a folder for a web server"}},
      .run = run_view,
  };
}

}  // namespace cingulum
