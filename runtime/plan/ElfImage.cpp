#include "runtime/plan/ElfImage.h"

#include <cstring>
#include <elf.h>
#include <fmt/format.h>
#include <optional>
#include <vector>

namespace msc {
namespace {

constexpr std::string_view allowedImports[] = {"memcpy", "memmove", "memset"};

Error bad(const std::string &why) { return {ExitCode::BadFile, why, ""}; }

/// Bounded access to the bytes of an object, by file offset and by virtual address.
class Reader {
public:
  explicit Reader(std::string_view bytes) : bytes(bytes) {}

  template <typename T> bool at(uint64_t offset, T &value) const {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
      return false;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return true;
  }
  std::optional<std::string> text(uint64_t offset) const {
    if (offset >= bytes.size())
      return std::nullopt;
    size_t end = bytes.find('\0', offset);
    if (end == std::string_view::npos)
      return std::nullopt;
    return std::string(bytes.substr(offset, end - offset));
  }
  /// File offset of a virtual address; none outside the loaded segments.
  std::optional<uint64_t> offsetOf(uint64_t address) const {
    for (const Elf64_Phdr &segment : segments)
      if (address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
        return segment.p_offset + (address - segment.p_vaddr);
    return std::nullopt;
  }

  std::string_view bytes;
  std::vector<Elf64_Phdr> segments; ///< PT_LOAD only
};

/// The entries of the dynamic section that matter here.
struct Dynamic {
  uint64_t symbols = 0, strings = 0, hash = 0, gnuHash = 0;
  uint64_t rela = 0, relaBytes = 0, plt = 0, pltBytes = 0;
};

Status readHeader(Reader &reader, Elf64_Phdr &dynamic) {
  Elf64_Ehdr header;
  if (!reader.at(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return bad("it is not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 || header.e_type != ET_DYN)
    return bad("it is not an x86-64 shared object");
  bool found = false;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (header.e_phentsize != sizeof(segment) || !reader.at(header.e_phoff + i * sizeof(segment), segment))
      return bad("its program headers are cut off");
    bool writable = segment.p_flags & PF_W, executable = segment.p_flags & PF_X;
    if ((segment.p_type == PT_LOAD || segment.p_type == PT_GNU_STACK) && writable && executable)
      return bad("it has a segment that is writable and executable");
    if (segment.p_type == PT_INTERP || segment.p_type == PT_TLS)
      return bad("it wants an interpreter or thread-local storage");
    if (segment.p_type == PT_LOAD) {
      if (segment.p_offset > reader.bytes.size() || segment.p_filesz > reader.bytes.size() - segment.p_offset ||
          segment.p_memsz < segment.p_filesz || segment.p_memsz > (uint64_t{1} << 32))
        return bad("a segment lies outside the file");
      reader.segments.push_back(segment);
    }
    if (segment.p_type == PT_DYNAMIC) {
      dynamic = segment;
      found = true;
    }
  }
  if (!found)
    return bad("it has no dynamic section");
  // The loader goes by the address alone.
  std::optional<uint64_t> offset = reader.offsetOf(dynamic.p_vaddr);
  if (!offset || *offset != dynamic.p_offset || dynamic.p_filesz == 0 ||
      !reader.offsetOf(dynamic.p_vaddr + (dynamic.p_filesz - 1)))
    return bad("its dynamic section is not where it is loaded");
  return {};
}

Status readDynamic(const Reader &reader, const Elf64_Phdr &segment, Dynamic &dynamic) {
  for (uint64_t i = 0; i < segment.p_filesz / sizeof(Elf64_Dyn); ++i) {
    Elf64_Dyn entry;
    if (!reader.at(segment.p_offset + i * sizeof(entry), entry))
      return bad("its dynamic section is cut off");
    switch (entry.d_tag) {
    case DT_NULL: return {};
    case DT_NEEDED: return bad("it needs another library");
    case DT_INIT:
    case DT_FINI:
    case DT_INIT_ARRAY:
    case DT_FINI_ARRAY:
    case DT_PREINIT_ARRAY: return bad("it has code that runs when it is loaded");
    case DT_TEXTREL: return bad("it wants to change its code when it is loaded");
    case DT_REL: return bad("it has relocations of an unexpected kind");
    case DT_JMPREL: dynamic.plt = entry.d_un.d_ptr; break;
    case DT_PLTRELSZ: dynamic.pltBytes = entry.d_un.d_val; break;
    case DT_SYMTAB: dynamic.symbols = entry.d_un.d_ptr; break;
    case DT_STRTAB: dynamic.strings = entry.d_un.d_ptr; break;
    case DT_HASH: dynamic.hash = entry.d_un.d_ptr; break;
    case DT_GNU_HASH: dynamic.gnuHash = entry.d_un.d_ptr; break;
    case DT_RELA: dynamic.rela = entry.d_un.d_ptr; break;
    case DT_RELASZ: dynamic.relaBytes = entry.d_un.d_val; break;
    default: break;
    }
  }
  return bad("its dynamic section has no end");
}

/// Number of dynamic symbols from the hash tables; the count stands nowhere else that the loader looks at.
std::optional<uint64_t> symbolCount(const Reader &reader, const Dynamic &dynamic) {
  if (auto table = reader.offsetOf(dynamic.hash); dynamic.hash != 0 && table) {
    uint32_t chains = 0;
    return reader.at(*table + 4, chains) ? std::optional<uint64_t>(chains) : std::nullopt;
  }
  auto table = reader.offsetOf(dynamic.gnuHash);
  uint32_t header[4];
  if (dynamic.gnuHash == 0 || !table || !reader.at(*table, header))
    return std::nullopt;
  uint64_t buckets = *table + sizeof(header) + uint64_t{8} * header[2], chains = buckets + uint64_t{4} * header[0];
  uint64_t last = 0;
  for (uint64_t i = 0; i < header[0]; ++i) {
    uint32_t first = 0;
    if (!reader.at(buckets + 4 * i, first))
      return std::nullopt;
    last = std::max<uint64_t>(last, first);
  }
  if (last < header[1])
    return header[1];
  for (uint32_t link = 0;; ++last) {
    if (!reader.at(chains + 4 * (last - header[1]), link))
      return std::nullopt;
    if (link & 1)
      return last + 1;
  }
}

/// Only relocations that store an address, none that calls a function to find it.
Status checkRelocations(const Reader &reader, uint64_t address, uint64_t size) {
  if (size == 0)
    return {};
  auto table = reader.offsetOf(address);
  for (uint64_t i = 0; i < size / sizeof(Elf64_Rela); ++i) {
    Elf64_Rela relocation;
    if (!table || !reader.at(*table + i * sizeof(relocation), relocation))
      return bad("its relocations are cut off");
    uint64_t kind = ELF64_R_TYPE(relocation.r_info);
    if (kind != R_X86_64_RELATIVE && kind != R_X86_64_GLOB_DAT && kind != R_X86_64_64 &&
        kind != R_X86_64_JUMP_SLOT)
      return bad(fmt::format("it has a relocation of kind {}", kind));
  }
  return {};
}

} // namespace

Result<ElfImage> readKernelObject(std::string_view bytes) {
  Reader reader(bytes);
  Elf64_Phdr segment;
  if (Status status = readHeader(reader, segment); !status)
    return status.error();
  Dynamic dynamic;
  if (Status status = readDynamic(reader, segment, dynamic); !status)
    return status.error();
  if (Status status = checkRelocations(reader, dynamic.rela, dynamic.relaBytes); !status)
    return status.error();
  if (Status status = checkRelocations(reader, dynamic.plt, dynamic.pltBytes); !status)
    return status.error();
  auto symbols = reader.offsetOf(dynamic.symbols), strings = reader.offsetOf(dynamic.strings);
  auto count = symbolCount(reader, dynamic);
  if (!symbols || !strings || !count)
    return bad("its symbol table is cut off");
  ElfImage image;
  for (uint64_t i = 1; i < *count; ++i) {
    Elf64_Sym symbol;
    if (!reader.at(*symbols + i * sizeof(symbol), symbol))
      return bad("its symbol table is cut off");
    auto name = reader.text(*strings + symbol.st_name);
    if (!name)
      return bad("its symbol names are cut off");
    if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
      return bad(fmt::format("'{}' is an indirect function", *name));
    if (symbol.st_shndx != SHN_UNDEF) {
      image.defined.insert(*name);
      continue;
    }
    bool allowed = false;
    for (std::string_view import : allowedImports)
      allowed |= *name == import;
    if (!allowed && !name->empty())
      return bad(fmt::format("it imports '{}'", *name));
    image.imported.insert(*name);
  }
  return image;
}

} // namespace msc
