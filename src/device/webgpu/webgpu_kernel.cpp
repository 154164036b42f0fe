#include "device/webgpu/webgpu_kernel.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <vector>

namespace cingulum {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Bytes of the UTF-8 sequence at the start of `text`; 0 where there is none (RFC 3629: shortest form, no surrogates).
std::size_t utf8_sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
    return continues(1) && continues(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
    return continues(1) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

// The text with comments replaced by spaces. Block comments of WGSL nest.
std::string without_comments(std::string_view text) {
  std::string plain(text);
  std::size_t depth = 0;
  for (std::size_t i = 0; i < plain.size();) {
    const std::string_view two = std::string_view(plain).substr(i, 2);
    if (two == "/*") {
      ++depth;
    } else if (two == "*/" && depth > 0) {
      --depth;
      plain[i] = plain[i + 1] = ' ';
      i += 2;
      continue;
    } else if (two == "//" && depth == 0) {
      while (i < plain.size() && plain[i] != '\n') plain[i++] = ' ';
      continue;
    }
    if (depth > 0) {
      if (two == "/*") plain[i++] = ' ';
      plain[i] = ' ';
    }
    ++i;
  }
  return plain;
}

// Position of "fn NAME" in the text, or npos.
std::size_t find_function(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find("fn"); at != std::string_view::npos; at = text.find("fn", at + 1)) {
    if (at > 0 && is_name_character(text[at - 1])) continue;
    std::size_t i = at + 2;
    if (i >= text.size() || !is_space(text[i])) continue;
    while (i < text.size() && is_space(text[i])) ++i;
    if (text.substr(i, name.size()) != name) continue;
    i += name.size();
    if (i < text.size() && is_name_character(text[i])) continue;
    return at;
  }
  return std::string_view::npos;
}

std::uint32_t word_of(const KernelArgument& argument) {
  return std::visit(
      [](const auto& value) -> std::uint32_t {
        using T = std::decay_t<decltype(value)>;
        std::uint32_t word = 0;
        if constexpr (sizeof(T) == 4 && std::is_arithmetic_v<T>) std::memcpy(&word, &value, 4);
        return word;
      },
      argument);
}

// WebGPU lets a buffer be read by several arguments of a launch or be written by one, not both.
Status check_aliases(const Kernel& kernel, std::span<const KernelArgument> arguments) {
  const auto& parameters = kernel.parameters();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const auto* a = std::get_if<BufferArgument>(&arguments[i]);
      const auto* b = std::get_if<BufferArgument>(&arguments[j]);
      if (a == nullptr || b == nullptr || a->buffer != b->buffer) continue;
      if (parameters[i].kind == ParameterKind::buffer_in && parameters[j].kind == ParameterKind::buffer_in) continue;
      return fail(ErrorKind::invalid_argument,
                  "launching {}: '{}' and '{}' are one buffer and one of them is written; WebGPU wants two",
                  kernel.name(), parameters[j].name, parameters[i].name);
    }
  }
  return {};
}

WGPUBindGroupLayoutEntry layout_entry(std::uint32_t binding, WGPUBufferBindingType type) {
  WGPUBindGroupLayoutEntry entry = WGPU_BIND_GROUP_LAYOUT_ENTRY_INIT;
  entry.binding = binding;
  entry.visibility = WGPUShaderStage_Compute;
  entry.buffer.type = type;
  return entry;
}

// Everything that a pipeline is made from.
std::string pipeline_key(const KernelSource& source) {
  std::string key = source.name + (source.trusted ? " trusted\n" : "\n");
  for (const KernelParameter& parameter : source.parameters)
    key += static_cast<char>('0' + static_cast<int>(parameter.kind));
  return key + "\n" + source.text;
}

}  // namespace

std::shared_ptr<const WebgpuPipeline> WebgpuPipelineCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return entries_.front().pipeline;
}

void WebgpuPipelineCache::keep(std::string key, std::shared_ptr<const WebgpuPipeline> pipeline) {
  const std::lock_guard lock(mutex_);
  entries_.push_front({std::move(key), std::move(pipeline)});
  if (entries_.size() > most_entries) entries_.pop_back();
}

Status check_wgsl_text(std::string_view wgsl, std::string_view name) {
  // Far above what people and generators write, far below what overflows the parser's stack (between 1000 and 3000).
  constexpr int deepest_nesting = 256;
  int line = 1;
  int depth = 0;
  int operators = 0;  // unary operators nest too: a run of them counts as depth
  for (std::size_t i = 0; i < wgsl.size();) {
    const std::size_t length = utf8_sequence_length(wgsl.substr(i));
    if (length == 0) {
      return fail(ErrorKind::compilation, "compiling {}: line {}: the text is not UTF-8", name, line);
    }
    const char c = wgsl[i];
    i += length;
    if (c == '\n') ++line;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c == '-' || c == '!' || c == '~' || c == '&' || c == '*') {
      ++operators;
    } else if (!is_space(c)) {
      operators = 0;
    }
    if (depth + operators > deepest_nesting) {
      return fail(ErrorKind::compilation, "compiling {}: line {}: nested more than {} deep", name, line,
                  deepest_nesting);
    }
  }
  return {};
}

Result<std::array<std::uint32_t, 3>> find_workgroup_size(std::string_view wgsl, std::string_view name) {
  const std::string plain = without_comments(wgsl);
  const std::string_view text = plain;
  const std::size_t function = find_function(text, name);
  if (function == std::string_view::npos) {
    return fail(ErrorKind::compilation, "compiling {}: the WGSL source has no function of that name", name);
  }
  // The attributes of a function stand between the end of the previous declaration and its `fn`.
  const std::size_t previous = text.find_last_of(";}", function);
  const std::string_view attributes = text.substr(previous == std::string_view::npos ? 0 : previous + 1,
                                                  function - (previous == std::string_view::npos ? 0 : previous + 1));
  constexpr std::string_view keyword = "@workgroup_size";
  std::array<std::uint32_t, 3> size{1, 1, 1};
  std::size_t at = attributes.find(keyword);
  const auto malformed = [&] {
    return fail(ErrorKind::compilation,
                "compiling {}: the entry point needs @compute @workgroup_size(...) with literal numbers", name);
  };
  if (at == std::string_view::npos) return malformed();
  std::string_view rest = attributes.substr(at + keyword.size());
  const auto skip_space = [&] {
    while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
  };
  skip_space();
  if (!rest.starts_with('(')) return malformed();
  for (std::size_t axis = 0; axis < 3; ++axis) {
    rest.remove_prefix(1);
    skip_space();
    if (axis > 0 && rest.starts_with(')')) return size;  // a trailing comma
    const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), size[axis]);
    if (parsed.ec != std::errc{} || size[axis] == 0) return malformed();
    rest.remove_prefix(static_cast<std::size_t>(parsed.ptr - rest.data()));
    if (rest.starts_with('u') || rest.starts_with('i')) rest.remove_prefix(1);
    skip_space();
    if (rest.starts_with(')')) return size;
    if (!rest.starts_with(',')) return malformed();
  }
  return malformed();
}

Result<std::unique_ptr<Kernel>> compile_wgsl(WebgpuDevice& device, const KernelSource& source) {
  const auto start = std::chrono::steady_clock::now();
  const WgpuLibrary& wgpu = device.library();
  CGL_TRY(check_wgsl_text(source.text, source.name));

  WebgpuKernel::Objects objects;
  std::vector<WGPUBindGroupLayoutEntry> entries;
  std::uint64_t scalars = 0;
  for (const KernelParameter& parameter : source.parameters) {
    if (is_buffer(parameter.kind)) {
      entries.push_back(layout_entry(static_cast<std::uint32_t>(entries.size()),
                                     parameter.kind == ParameterKind::buffer_in ? WGPUBufferBindingType_ReadOnlyStorage
                                                                                : WGPUBufferBindingType_Storage));
      continue;
    }
    if (parameter.kind >= ParameterKind::i64) {
      return fail(ErrorKind::invalid_argument, "compiling {}: parameter '{}' is {}; WGSL has scalars of 4 bytes only",
                  source.name, parameter.name, parameter_kind_name(parameter.kind));
    }
    ++scalars;
  }
  if (scalars > 0) {
    // Uniform blocks are sized in rows of 16 bytes.
    objects.scalar_bytes = (scalars * 4 + 15) / 16 * 16;
    entries.push_back(layout_entry(static_cast<std::uint32_t>(entries.size()), WGPUBufferBindingType_Uniform));
    CGL_TRY_ASSIGN(objects.scalars,
                   device.create_buffer(objects.scalar_bytes, WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst,
                                        "the scalars of " + source.name));
  }

  CompilationReport report;
  report.target = device.capabilities().runtime_compiler_note;
  std::string key = pipeline_key(source);
  objects.pipeline = device.pipelines().find(key);
  if (objects.pipeline != nullptr) {
    report.from_cache = true;
    return std::make_unique<WebgpuKernel>(device, source, std::move(report), std::move(objects));
  }

  const auto compilation_error = [&](const Error& error) {
    return tl::make_unexpected(Error(ErrorKind::compilation, error.message()));
  };
  WGPUShaderSourceWGSL wgsl = WGPU_SHADER_SOURCE_WGSL_INIT;
  wgsl.code = wgpu_text(source.text);
  WGPUShaderModuleDescriptor module_descriptor = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
  module_descriptor.nextInChain = &wgsl.chain;
  module_descriptor.label = wgpu_text(source.name);
  auto module = device.checked("compiling " + source.name, [&] {
    return WgpuHandle<WGPUShaderModule>(source.trusted
                                            ? wgpu.wgpuDeviceCreateShaderModuleTrusted(
                                                  device.handle(), &module_descriptor, WGPUShaderRuntimeChecks_None)
                                            : wgpu.wgpuDeviceCreateShaderModule(device.handle(), &module_descriptor),
                                        wgpu.wgpuShaderModuleRelease);
  });
  if (!module) return compilation_error(module.error());
  // After the compiler, whose message about a broken text is better than ours.
  CGL_TRY_ASSIGN(const auto workgroup, find_workgroup_size(source.text, source.name));

  auto compiled = std::make_shared<WebgpuPipeline>();
  compiled->workgroup = workgroup;
  auto pipeline = device.checked("compiling " + source.name, [&] {
    WGPUBindGroupLayoutDescriptor layout_descriptor = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
    layout_descriptor.entryCount = entries.size();
    layout_descriptor.entries = entries.data();
    compiled->layout = {wgpu.wgpuDeviceCreateBindGroupLayout(device.handle(), &layout_descriptor),
                        wgpu.wgpuBindGroupLayoutRelease};
    const WGPUBindGroupLayout layouts[] = {compiled->layout.get()};
    WGPUPipelineLayoutDescriptor pipeline_layout_descriptor = WGPU_PIPELINE_LAYOUT_DESCRIPTOR_INIT;
    pipeline_layout_descriptor.bindGroupLayoutCount = 1;
    pipeline_layout_descriptor.bindGroupLayouts = layouts;
    const WgpuHandle<WGPUPipelineLayout> pipeline_layout(
        wgpu.wgpuDeviceCreatePipelineLayout(device.handle(), &pipeline_layout_descriptor),
        wgpu.wgpuPipelineLayoutRelease);
    WGPUComputePipelineDescriptor descriptor = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
    descriptor.layout = pipeline_layout.get();
    descriptor.compute.module = module->get();
    descriptor.compute.entryPoint = wgpu_text(source.name);
    return WgpuHandle<WGPUComputePipeline>(wgpu.wgpuDeviceCreateComputePipeline(device.handle(), &descriptor),
                                           wgpu.wgpuComputePipelineRelease);
  });
  if (!pipeline) return compilation_error(pipeline.error());
  compiled->pipeline = std::move(*pipeline);
  objects.pipeline = std::move(compiled);
  device.pipelines().keep(std::move(key), objects.pipeline);
  report.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return std::make_unique<WebgpuKernel>(device, source, std::move(report), std::move(objects));
}

Result<WgpuHandle<WGPUBindGroup>> WebgpuKernel::bind(std::span<const KernelArgument> arguments) {
  const WgpuLibrary& wgpu = webgpu_.library();
  CGL_TRY(check_aliases(*this, arguments));
  std::vector<WGPUBindGroupEntry> entries;
  std::vector<std::uint32_t> words;
  for (const KernelArgument& argument : arguments) {
    const auto* buffer = std::get_if<BufferArgument>(&argument);
    if (buffer == nullptr) {
      words.push_back(word_of(argument));
      continue;
    }
    const auto& memory = static_cast<const WebgpuBuffer&>(*buffer->buffer);
    WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
    entry.binding = static_cast<std::uint32_t>(entries.size());
    entry.buffer = memory.handle();
    entry.offset = buffer->offset;
    // Whole words: a buffer has room for its last one.
    entry.size = buffer->bytes == 0 ? memory.padded_bytes() - buffer->offset : (buffer->bytes + 3) / 4 * 4;
    entries.push_back(entry);
  }
  if (objects_.scalars) {
    words.resize(objects_.scalar_bytes / 4);
    wgpu.wgpuQueueWriteBuffer(webgpu_.queue_handle(), objects_.scalars.get(), 0, words.data(), objects_.scalar_bytes);
    WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
    entry.binding = static_cast<std::uint32_t>(entries.size());
    entry.buffer = objects_.scalars.get();
    entry.size = objects_.scalar_bytes;
    entries.push_back(entry);
  }
  WGPUBindGroupDescriptor descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  descriptor.layout = objects_.pipeline->layout.get();
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  return webgpu_.checked("launching " + name(), [&] {
    return WgpuHandle<WGPUBindGroup>(wgpu.wgpuDeviceCreateBindGroup(webgpu_.handle(), &descriptor),
                                     wgpu.wgpuBindGroupRelease);
  });
}

}  // namespace cingulum
