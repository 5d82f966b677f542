#include "runtime/device/cpu/KernelLibrary.h"
#include "runtime/plan/ElfImage.h"
#include "test/runtime/PlanBuilder.h"

#include <cstring>
#include <elf.h>
#include <random>

using namespace msc;
using namespace msc::device;

namespace {

plan::Plan planWith(const std::string &isa, const std::string &code) {
  plan::Plan plan;
  plan.add_kernels()->set_name("mark");
  plan.add_objects()->set_isa(isa);
  plan.mutable_objects(0)->set_code(code);
  return plan;
}

TEST(KernelLibrary, LoadsAndFindsKernels) {
  auto library = KernelLibrary::load(planWith("x86-64-v3", test::PlanBuilder::kernelCode()));
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_EQ((*library)->isa(), "x86-64-v3");
  auto *mark = reinterpret_cast<void (*)(float *, int64_t, int64_t)>((*library)->find("mark"));
  ASSERT_NE(mark, nullptr);
  float out[4] = {};
  mark(out, 1, 3);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[2], 1003);
  EXPECT_EQ((*library)->find("gone"), nullptr);
}

TEST(KernelLibrary, TwoPlansDoNotMix) {
  // The loader takes two libraries of one name for one: each keeps its own descriptor.
  std::string other = test::PlanBuilder::kernelCode();
  size_t at = other.find(std::string("\0mark\0", 6));
  ASSERT_NE(at, std::string::npos);
  auto first = KernelLibrary::load(planWith("x86-64-v3", test::PlanBuilder::kernelCode()));
  auto second = KernelLibrary::load(planWith("x86-64-v3", other));
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_NE((*first)->find("mark"), (*second)->find("mark"));
}

TEST(KernelLibrary, TheCpuDecides) {
  std::string code = test::PlanBuilder::kernelCode();
  auto old = KernelLibrary::load(planWith("x86-64-v3", code), CpuLevel::TooOld);
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, ExitCode::NoResource);
  EXPECT_EQ(old.error().message, "this CPU is older than x86-64-v3 (AVX2 and FMA)");
  auto tooNew = KernelLibrary::load(planWith("x86-64-v4", code), CpuLevel::V3);
  ASSERT_FALSE(tooNew);
  EXPECT_EQ(tooNew.error().code, ExitCode::BadFile);
  EXPECT_EQ(tooNew.error().message, "the plan has machine code for x86-64-v4, this CPU needs x86-64-v3");
  plan::Plan both = planWith("x86-64-v3", code);
  both.add_objects()->set_isa("x86-64-v4");
  both.mutable_objects(1)->set_code(code);
  EXPECT_EQ((*KernelLibrary::load(both, CpuLevel::V3))->isa(), "x86-64-v3");
  EXPECT_EQ((*KernelLibrary::load(both, CpuLevel::V4))->isa(), "x86-64-v4");
  EXPECT_TRUE(KernelLibrary::load(plan::Plan(), CpuLevel::V3)); // no kernels, no object needed
}

TEST(ElfImage, NamesWhatIsDefined) {
  auto image = readKernelObject(test::PlanBuilder::kernelCode());
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_TRUE(image->defined.count("mse") && image->defined.count("sgd") && image->defined.count("mark"));
  EXPECT_TRUE(image->imported.empty());
}

std::string read(const char *path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(ElfImage, RefusesWhatKernelsNeverHave) {
  // This test binary: a program with libraries, an interpreter and initialisers.
  auto self = readKernelObject(read("/proc/self/exe"));
  ASSERT_FALSE(self);
  auto libc = readKernelObject(read("/usr/lib/x86_64-linux-gnu/libc.so.6"));
  EXPECT_FALSE(libc);
  EXPECT_EQ(readKernelObject("").error().message, "it is not an ELF file");
  // Make the import list matter: turn a defined symbol into an undefined one.
  std::string code = test::PlanBuilder::kernelCode();
  auto *header = reinterpret_cast<Elf64_Ehdr *>(code.data());
  auto *sections = reinterpret_cast<Elf64_Shdr *>(code.data() + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i)
    if (sections[i].sh_type == SHT_DYNSYM)
      reinterpret_cast<Elf64_Sym *>(code.data() + sections[i].sh_offset)[1].st_shndx = SHN_UNDEF;
  auto imports = readKernelObject(code);
  ASSERT_FALSE(imports);
  EXPECT_EQ(imports.error().message.find("it imports '"), 0u) << imports.error().message;
}

TEST(ElfImage, WritableCodeIsRefused) {
  std::string code = test::PlanBuilder::kernelCode();
  auto *header = reinterpret_cast<Elf64_Ehdr *>(code.data());
  auto *segments = reinterpret_cast<Elf64_Phdr *>(code.data() + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i)
    if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X)
      segments[i].p_flags |= PF_W;
  EXPECT_EQ(readKernelObject(code).error().message, "it has a segment that is writable and executable");
}

Elf64_Phdr *dynamicSegment(std::string &code) {
  auto *header = reinterpret_cast<Elf64_Ehdr *>(code.data());
  auto *segments = reinterpret_cast<Elf64_Phdr *>(code.data() + header->e_phoff);
  return std::find_if(segments, segments + header->e_phnum, [](const Elf64_Phdr &segment) { return segment.p_type == PT_DYNAMIC; });
}

/// The loader follows the address of the dynamic section to its last entry, and asks nothing else.
TEST(ElfImage, TheDynamicSectionIsWhereItIsLoadedAndEnds) {
  std::string elsewhere = test::PlanBuilder::kernelCode();
  dynamicSegment(elsewhere)->p_vaddr ^= uint64_t{1} << 63;
  EXPECT_EQ(readKernelObject(elsewhere).error().message, "its dynamic section is not where it is loaded");
  std::string shifted = test::PlanBuilder::kernelCode();
  dynamicSegment(shifted)->p_vaddr += sizeof(Elf64_Dyn);
  EXPECT_EQ(readKernelObject(shifted).error().message, "its dynamic section is not where it is loaded");
  std::string endless = test::PlanBuilder::kernelCode();
  dynamicSegment(endless)->p_filesz = sizeof(Elf64_Dyn);
  EXPECT_EQ(readKernelObject(endless).error().message, "its dynamic section has no end");
}

TEST(ElfImage, DamagedObjectsAreReadWithinTheirBytes) {
  std::string code = test::PlanBuilder::kernelCode();
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = code.substr(0, round % 3 == 0 ? random() % code.size() : code.size());
    for (int i = 0; i < 4 && !damaged.empty(); ++i)
      damaged[random() % std::min<size_t>(damaged.size(), 1024)] = static_cast<char>(random());
    refused += !readKernelObject(damaged).isOk(); // must return: sanitizers watch the rest
  }
  EXPECT_GT(refused, 5000);
}

} // namespace
