// Layout of the result: [headers, .hash, .dynsym, .dynstr, constants] R, [.text] R X, [.dynamic] R W. Each segment starts
// on a page of its own; file offset and address are equal.
#include "passes/codegen/cpu/SharedObject.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>
#include <elf.h>

namespace msc::codegen {

namespace {

constexpr uint64_t page = 4096;

template <typename... T> llvm::Error failed(const char *format, const T &...values) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), format, values...);
}

class Linker {
public:
  explicit Linker(llvm::ArrayRef<char> object) : object(object) {}
  llvm::Expected<std::string> run();

private:
  template <typename T> const T *at(uint64_t offset) const { return reinterpret_cast<const T *>(object.data() + offset); }
  template <typename T> T *out(uint64_t offset) { return reinterpret_cast<T *>(&image[offset]); }
  const char *sectionName(const Elf64_Shdr &section) const { return at<char>(names->sh_offset + section.sh_name); }
  const char *symbolName(const Elf64_Sym &symbol) const { return at<char>(strings->sh_offset + symbol.st_name); }
  /// Appends bytes to the image, returns their offset.
  uint64_t append(const void *bytes, uint64_t size, uint64_t alignment);
  llvm::Error readSections();
  llvm::Error placeSections(bool executable);
  void writeDynamicSymbols();
  void finishSymbols();
  llvm::Error relocate();
  void writeDynamic();
  void writeHeaders(uint64_t readEnd, uint64_t textStart, uint64_t textEnd);

  llvm::ArrayRef<char> object;
  llvm::ArrayRef<Elf64_Shdr> sections;
  const Elf64_Shdr *names = nullptr, *strings = nullptr;
  llvm::ArrayRef<Elf64_Sym> symbols;
  std::vector<const Elf64_Sym *> exported;
  llvm::DenseMap<unsigned, uint64_t> places; ///< section -> address
  std::string image;
  uint64_t hash = 0, dynsym = 0, dynstr = 0, dynstrSize = 0, dynamic = 0;
};

uint64_t Linker::append(const void *bytes, uint64_t size, uint64_t alignment) {
  image.resize(llvm::alignTo(image.size(), alignment), '\0');
  uint64_t offset = image.size();
  image.append(static_cast<const char *>(bytes), size);
  return offset;
}

llvm::Error Linker::readSections() {
  if (object.size() < sizeof(Elf64_Ehdr) || std::memcmp(object.data(), ELFMAG, SELFMAG) != 0)
    return failed("the code generator gave no elf object");
  const auto *header = at<Elf64_Ehdr>(0);
  if (header->e_type != ET_REL || header->e_machine != EM_X86_64)
    return failed("the code generator gave no relocatable x86-64 object");
  sections = {at<Elf64_Shdr>(header->e_shoff), header->e_shnum};
  names = &sections[header->e_shstrndx];
  for (const Elf64_Shdr &section : sections)
    if (section.sh_type == SHT_SYMTAB) {
      symbols = {at<Elf64_Sym>(section.sh_offset), section.sh_size / sizeof(Elf64_Sym)};
      strings = &sections[section.sh_link];
    }
  for (const Elf64_Sym &symbol : symbols.drop_front(symbols.empty() ? 0 : 1)) {
    if (symbol.st_shndx == SHN_UNDEF)
      return failed("kernel code refers to undefined symbol '%s'", symbolName(symbol));
    if (ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
      exported.push_back(&symbol);
  }
  return llvm::Error::success();
}

llvm::Error Linker::placeSections(bool executable) {
  for (auto [index, section] : llvm::enumerate(sections)) {
    if (!(section.sh_flags & SHF_ALLOC) || section.sh_size == 0)
      continue;
    if ((section.sh_flags & SHF_WRITE) || section.sh_type != SHT_PROGBITS)
      return failed("kernel code has the unexpected section '%s'", sectionName(section));
    if (bool(section.sh_flags & SHF_EXECINSTR) == executable)
      places[index] = append(at<char>(section.sh_offset), section.sh_size, std::max<uint64_t>(section.sh_addralign, 1));
  }
  return llvm::Error::success();
}

void Linker::writeDynamicSymbols() {
  // One bucket: symbols are looked up once, when a plan is loaded.
  std::vector<uint32_t> table = {1, uint32_t(exported.size() + 1), exported.empty() ? 0u : 1u, 0};
  for (size_t i = 1; i <= exported.size(); ++i)
    table.push_back(i == exported.size() ? 0 : i + 1);
  hash = append(table.data(), table.size() * 4, 8);
  std::string text(1, '\0');
  std::vector<Elf64_Sym> entries(1 + exported.size());
  for (size_t i = 0; i < exported.size(); ++i) {
    entries[i + 1] = *exported[i];
    entries[i + 1].st_name = text.size();
    entries[i + 1].st_shndx = 5; // .text in writeHeaders
    text += symbolName(*exported[i]);
    text += '\0';
  }
  dynsym = append(entries.data(), entries.size() * sizeof(Elf64_Sym), 8);
  dynstr = append(text.data(), text.size(), 1);
  dynstrSize = text.size();
}

void Linker::finishSymbols() {
  for (size_t i = 0; i < exported.size(); ++i)
    out<Elf64_Sym>(dynsym)[i + 1].st_value = places[exported[i]->st_shndx] + exported[i]->st_value;
}

llvm::Error Linker::relocate() {
  for (const Elf64_Shdr &section : sections) {
    if (section.sh_type != SHT_RELA || !places.count(section.sh_info))
      continue;
    for (const Elf64_Rela &entry :
         llvm::ArrayRef(at<Elf64_Rela>(section.sh_offset), section.sh_size / sizeof(Elf64_Rela))) {
      const Elf64_Sym &symbol = symbols[ELF64_R_SYM(entry.r_info)];
      unsigned type = ELF64_R_TYPE(entry.r_info);
      if ((type != R_X86_64_PC32 && type != R_X86_64_PLT32) || !places.count(symbol.st_shndx))
        return failed("kernel code has the unexpected relocation %u to '%s'", type, symbolName(symbol));
      uint64_t place = places[section.sh_info] + entry.r_offset;
      int64_t value = int64_t(places[symbol.st_shndx] + symbol.st_value + entry.r_addend - place);
      if (!llvm::isInt<32>(value))
        return failed("kernel code is larger than 2 GiB");
      int32_t word = value;
      std::memcpy(&image[place], &word, sizeof(word));
    }
  }
  return llvm::Error::success();
}

void Linker::writeDynamic() {
  Elf64_Dyn entries[] = {{DT_HASH, {hash}},          {DT_STRTAB, {dynstr}},
                         {DT_SYMTAB, {dynsym}},      {DT_STRSZ, {dynstrSize}},
                         {DT_SYMENT, {sizeof(Elf64_Sym)}}, {DT_NULL, {0}}};
  // The loader writes into this section.
  dynamic = append(entries, sizeof(entries), page);
}

void Linker::writeHeaders(uint64_t readEnd, uint64_t textStart, uint64_t textEnd) {
  uint64_t dynamicSize = image.size() - dynamic;
  auto *segment = out<Elf64_Phdr>(sizeof(Elf64_Ehdr));
  auto add = [&](uint32_t type, uint32_t flags, uint64_t start, uint64_t size, uint64_t alignment) {
    *segment++ = {type, flags, start, start, start, size, size, alignment};
  };
  add(PT_LOAD, PF_R, 0, readEnd, page);
  add(PT_LOAD, PF_R | PF_X, textStart, textEnd - textStart, page);
  add(PT_LOAD, PF_R | PF_W, dynamic, dynamicSize, page);
  add(PT_DYNAMIC, PF_R | PF_W, dynamic, dynamicSize, 8);
  add(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16);

  // Section headers: debuggers and profilers find symbols through them.
  std::string text(1, '\0');
  std::vector<Elf64_Shdr> table(1);
  auto section = [&](const char *name, uint32_t type, uint64_t flags, uint64_t start, uint64_t size, uint32_t link,
                     uint32_t info, uint64_t entry) {
    table.push_back({uint32_t(text.size()), type, flags, flags ? start : 0, start, size, link, info, 8, entry});
    text += name;
    text += '\0';
  };
  section(".hash", SHT_HASH, SHF_ALLOC, hash, dynsym - hash, 2, 0, 4);
  section(".dynsym", SHT_DYNSYM, SHF_ALLOC, dynsym, dynstr - dynsym, 3, 1, sizeof(Elf64_Sym));
  section(".dynstr", SHT_STRTAB, SHF_ALLOC, dynstr, dynstrSize, 0, 0, 0);
  section(".rodata", SHT_PROGBITS, SHF_ALLOC, dynstr + dynstrSize, readEnd - dynstr - dynstrSize, 0, 0, 0);
  section(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, textStart, textEnd - textStart, 0, 0, 0);
  section(".dynamic", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, dynamic, dynamicSize, 3, 0, sizeof(Elf64_Dyn));
  section(".shstrtab", SHT_STRTAB, 0, 0, 0, 0, 0, 0);
  table.back().sh_offset = append(text.data(), text.size(), 1);
  table.back().sh_size = text.size();
  uint64_t tableStart = append(table.data(), table.size() * sizeof(Elf64_Shdr), 8);

  Elf64_Ehdr header = *at<Elf64_Ehdr>(0);
  header.e_type = ET_DYN;
  header.e_phoff = sizeof(Elf64_Ehdr);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 5;
  header.e_shoff = tableStart;
  header.e_shnum = table.size();
  header.e_shstrndx = table.size() - 1;
  std::memcpy(image.data(), &header, sizeof(header));
}

llvm::Expected<std::string> Linker::run() {
  if (llvm::Error error = readSections())
    return error;
  image.assign(sizeof(Elf64_Ehdr) + 5 * sizeof(Elf64_Phdr), '\0');
  writeDynamicSymbols();
  if (llvm::Error error = placeSections(/*executable=*/false))
    return error;
  uint64_t readEnd = image.size();
  image.resize(llvm::alignTo(image.size(), page), '\0');
  uint64_t textStart = image.size();
  if (llvm::Error error = placeSections(/*executable=*/true))
    return error;
  uint64_t textEnd = image.size();
  if (llvm::Error error = relocate())
    return error;
  finishSymbols();
  writeDynamic();
  writeHeaders(readEnd, textStart, textEnd);
  return std::move(image);
}

} // namespace

llvm::Expected<std::string> linkSharedObject(llvm::ArrayRef<char> object) { return Linker(object).run(); }

} // namespace msc::codegen
