// SPDX-License-Identifier: Apache-2.0
#include "fake_cuda/ptx_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "fake_cuda/ptx_block.h"
#include "fake_cuda/ptx_operations.h"

namespace convoy::testing {
namespace {

constexpr const char* kSpace = " \t\n";

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string without_comments(const std::string& text) {
  return std::regex_replace(text, std::regex("//[^\n]*"), "");
}

// Splits `text` at the commas outside braces and brackets.
std::vector<std::string> operands_of(const std::string& text) {
  std::vector<std::string> operands(1);
  int depth = 0;
  for (const char letter : text) {
    depth += letter == '{' || letter == '[' ? 1 : letter == '}' || letter == ']' ? -1 : 0;
    if (letter == ',' && depth == 0) {
      operands.emplace_back();
    } else {
      operands.back() += letter;
    }
  }
  for (std::string& operand : operands) operand = trimmed(operand);
  if (operands.back().empty()) operands.pop_back();
  return operands;
}

std::string inner(const std::string& text) { return text.substr(1, text.size() - 2); }

}  // namespace

// Reads one entry, statement by statement.
class PtxReader {
 public:
  PtxReader(PtxEntry& entry, PtxResults results) : entry_(entry), results_(results) {
    entry_.initial_.resize(kFirstFreeRegister);
    for (const auto& [name, number] : std::map<std::string, uint32_t>{{"%tid.x", kThreadX},
                                                                      {"%ctaid.x", kBlockX},
                                                                      {"%ntid.x", kBlockThreadsX},
                                                                      {"%nctaid.x", kBlocksX}})
      registers_[name] = number;
  }

  // Reads the variables that are declared outside of entries.
  void read_module(const std::string& text) {
    std::string statement;
    for (const char letter : text) {
      if (letter != ';') {
        statement += letter;
        continue;
      }
      if (const size_t shared = statement.find(".shared "); shared != std::string::npos)
        add_shared(statement.substr(shared));
      statement.clear();
    }
  }

  void read(const std::string& body) {
    std::string statement;
    for (const char letter : body) {
      if (letter == ';') {
        add(trimmed(statement));
        statement.clear();
      } else if (letter == ':' && statement.find_first_of("[{") == std::string::npos) {
        labels_[trimmed(statement)] = std::ssize(entry_.instructions_);
        statement.clear();
      } else {
        statement += letter;
      }
    }
    if (const std::string rest = trimmed(statement); !rest.empty() && rest != "}")
      throw PtxError("unfinished: " + rest);
    PtxInstruction end;
    end.kind = PtxInstruction::Kind::Exit;
    entry_.instructions_.push_back(end);
    for (const auto& [instruction, label] : jumps_) {
      if (!labels_.contains(label)) throw PtxError("no label " + label);
      entry_.instructions_[instruction].target = labels_[label];
    }
  }

 private:
  void add(std::string text) {
    // Braces open and close scopes, which have no meaning in this program.
    while (!text.empty() && (text.front() == '{' || text.front() == '}'))
      text = trimmed(text.substr(1));
    if (text.empty() || text.starts_with(".reg") || text.starts_with(".pragma")) return;
    if (text.starts_with(".shared")) return add_shared(text);
    if (text.starts_with(".local")) {
      std::smatch match;
      if (!std::regex_search(text, match, std::regex(R"((\w+)\[(\d+)\]$)")))
        throw PtxError("not known: " + text);
      registers_[match[1]] = kLocals;
      entry_.local_bytes_ += static_cast<uint32_t>(std::stoul(match[2]));
      return;
    }
    PtxInstruction instruction;
    instruction.place = static_cast<uint32_t>(entry_.instructions_.size());
    if (text.front() == '@') {
      const size_t end = text.find_first_of(kSpace);
      instruction.guard_value = text[1] != '!';
      instruction.guard = number_of(
          text.substr(instruction.guard_value ? 1 : 2, end - (instruction.guard_value ? 1 : 2)));
      text = trimmed(text.substr(end));
    }
    decode(text, instruction);
    entry_.instructions_.push_back(instruction);
  }

  void add_shared(const std::string& text) {
    std::smatch match;
    if (!std::regex_search(text, match,
                           std::regex(R"(\.align (\d+) \.[bu](\d+) ([\w$]+)(\[(\d+)\])?$)")))
      throw PtxError("not known: " + text);
    const uint64_t align = std::stoull(match[1]);
    entry_.shared_bytes_ = (entry_.shared_bytes_ + align - 1) / align * align;
    registers_[match[3]] = static_cast<uint32_t>(entry_.initial_.size());
    entry_.initial_.push_back(kSharedBegin + entry_.shared_bytes_);
    entry_.shared_bytes_ +=
        std::stoull(match[2]) / 8 * (match[5].matched ? std::stoull(match[5]) : 1);
  }

  void decode(const std::string& text, PtxInstruction& instruction) {
    const size_t end = text.find_first_of(kSpace);
    std::string name = text.substr(0, end);
    const std::string rest = end == std::string::npos ? "" : trimmed(text.substr(end));
    if (name == "bra" || name == "bra.uni") {
      instruction.kind = PtxInstruction::Kind::Jump;
      jumps_.emplace_back(entry_.instructions_.size(), rest);
      return;
    }
    if (name == "ret") {
      instruction.kind = PtxInstruction::Kind::Exit;
      return;
    }
    if (name == "bar.sync" && rest == "0") {
      instruction.kind = PtxInstruction::Kind::Barrier;
      return;
    }
    if (name.starts_with("griddepcontrol.")) {
      // This program runs kernels one after another, so there is nothing to wait for.
      entry_.waits_ |= name == "griddepcontrol.wait";
      instruction.run = [](const PtxInstruction&, uint64_t*, PtxMemory&) {};
      return;
    }
    const std::vector<std::string> operands = operands_of(rest);
    name = std::regex_replace(name, std::regex(R"(\.v[24]\.)"), ".");
    if (name.starts_with("mov.b") && operands.at(0).starts_with("{")) name += ".split";
    if (name.starts_with("mov.b") && operands.at(1).starts_with("{")) name += ".join";
    if (name == "shfl.sync.bfly.b32") instruction.kind = PtxInstruction::Kind::Shuffle;
    if (name == "shfl.sync.idx.b32") instruction.kind = PtxInstruction::Kind::ShuffleFromLane;
    if (name == "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
      instruction.kind = PtxInstruction::Kind::MatrixProduct;
    instruction.run = ptx_operation(name, results_);
    const bool known = instruction.run != nullptr || is_of_warp(instruction.kind);
    const bool stores = name.starts_with("st.") || name.starts_with("cp.async.");
    if (!known || (operands.empty() && !stores)) throw PtxError("not known: " + text);
    std::vector<uint32_t> to, from;
    for (size_t at = 0; at < operands.size(); ++at)
      add_operand(operands[at], instruction, at == 0 && !stores ? to : from);
    if (to.size() > 4 || from.size() > std::size(instruction.from))
      throw PtxError("not known: " + text);
    std::copy(to.begin(), to.end(), instruction.to);
    std::copy(from.begin(), from.end(), instruction.from);
    instruction.count =
        static_cast<uint32_t>(stores ? std::max<size_t>(from.size(), 1) - 1 : to.size());
  }

  void add_operand(const std::string& text, PtxInstruction& instruction,
                   std::vector<uint32_t>& list) {
    if (text.starts_with("{")) {
      for (const std::string& part : operands_of(inner(text))) list.push_back(number_of(part));
      return;
    }
    if (!text.starts_with("[")) {
      list.push_back(number_of(text));
      return;
    }
    const std::string address = inner(text);
    const size_t plus = address.find('+');
    list.push_back(number_of(trimmed(address.substr(0, plus))));
    instruction.offset = plus == std::string::npos ? 0 : std::stoll(address.substr(plus + 1));
  }

  // Returns the register with this name, or a register that holds this constant.
  uint32_t number_of(const std::string& text) {
    if (const auto known = registers_.find(text); known != registers_.end()) return known->second;
    if (text.find("_param_") != std::string::npos) return kParameters;
    const auto number = static_cast<uint32_t>(entry_.initial_.size());
    entry_.initial_.push_back(constant(text));
    registers_[text] = number;
    return number;
  }

  // Returns 0 if `text` is no constant, and so the name of a register.
  static uint64_t constant(const std::string& text) {
    if (text.starts_with("0f") || text.starts_with("0d"))
      return std::stoull(text.substr(2), nullptr, 16);
    if (text.starts_with("-")) return static_cast<uint64_t>(std::stoll(text));
    if (text[0] >= '0' && text[0] <= '9') return std::stoull(text);
    return 0;
  }

  PtxEntry& entry_;
  PtxResults results_;
  std::map<std::string, uint32_t> registers_;
  std::map<std::string, int64_t> labels_;
  std::vector<std::pair<size_t, std::string>> jumps_;
};

PtxEntry::PtxEntry(const std::string& module_text, const std::string& body, PtxResults results) {
  PtxReader reader(*this, results);
  reader.read_module(module_text);
  reader.read(body);
}

void PtxEntry::run(uint32_t num_blocks, uint32_t block_threads, const void* parameters,
                   const PtxAllocations& allocations) const {
  PtxMemory memory(allocations, instructions_.size(), shared_bytes_);
  run_all(num_blocks, block_threads, parameters, memory);
}

void PtxEntry::run_watched(uint32_t num_blocks, uint32_t block_threads, const void* parameters,
                           const PtxAllocations& allocations) const {
  PtxMemory memory(allocations, instructions_.size(), shared_bytes_);
  memory.watch();
  run_all(num_blocks, block_threads, parameters, memory);
}

PtxTraffic PtxEntry::measure(uint32_t num_blocks, uint32_t block_threads, const void* parameters,
                             const PtxAllocations& allocations) const {
  PtxMemory memory(allocations, instructions_.size(), shared_bytes_);
  memory.measure();
  run_all(num_blocks, block_threads, parameters, memory);
  return memory.traffic();
}

void PtxEntry::run_all(uint32_t num_blocks, uint32_t block_threads, const void* parameters,
                       PtxMemory& memory) const {
  PtxBlock threads(*this, num_blocks, block_threads, parameters, memory);
  for (uint32_t block = 0; block < num_blocks; ++block) threads.run(block);
}

void PtxEntry::run_block(uint32_t block, uint32_t num_blocks, uint32_t block_threads,
                         const void* parameters, const PtxAllocations& allocations) const {
  PtxMemory memory(allocations, instructions_.size(), shared_bytes_);
  PtxBlock(*this, num_blocks, block_threads, parameters, memory).run(block);
}

std::map<std::string, PtxEntry> read_ptx(const std::string& text, PtxResults results) {
  const std::string plain = without_comments(text);
  if (plain.find(".version") == std::string::npos || plain.find(".target") == std::string::npos)
    throw PtxError("not PTX");
  std::map<std::string, PtxEntry> entries;
  const std::string mark = ".visible .entry ";
  const std::string module_text = plain.substr(0, plain.find(mark));
  for (size_t at = plain.find(mark); at != std::string::npos; at = plain.find(mark, at)) {
    at += mark.size();
    const std::string name = plain.substr(at, plain.find('(', at) - at);
    const size_t begin = plain.find("\n{", at);
    const size_t end = plain.find("\n}", at);
    if (begin == std::string::npos || end == std::string::npos)
      throw PtxError("unfinished " + name);
    entries.emplace(name, PtxEntry(module_text, plain.substr(begin + 2, end - begin - 2), results));
    at = end;
  }
  return entries;
}

}  // namespace convoy::testing
