// How NCCL is found, and whether what we write down of its interface is what nccl.h says. Where libnccl is installed, it is
// opened and asked for what it answers without a GPU; no collective of NVIDIA's code has ever run here.
#include "runtime/comm/nccl/Transport.h"

#include <gtest/gtest.h>

#ifdef MSC_HAS_NCCL_HEADER
#include <nccl.h>
#include <type_traits>
#endif

using namespace msc;
using namespace msc::comm::nccl;

namespace {

#ifdef MSC_HAS_NCCL_HEADER
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
static_assert(int(Code::Success) == ncclSuccess && int(Code::UnhandledCudaError) == ncclUnhandledCudaError &&
              int(Code::SystemError) == ncclSystemError && int(Code::InternalError) == ncclInternalError &&
              int(Code::InvalidArgument) == ncclInvalidArgument && int(Code::InvalidUsage) == ncclInvalidUsage &&
              int(Code::RemoteError) == ncclRemoteError && int(Code::InProgress) == ncclInProgress);
static_assert(int(DataType::Uint8) == ncclUint8 && int(DataType::Int32) == ncclInt32 && int(DataType::Int64) == ncclInt64 &&
              int(DataType::Float16) == ncclFloat16 && int(DataType::Float32) == ncclFloat32 &&
              int(DataType::Float64) == ncclFloat64 && int(DataType::Bfloat16) == ncclBfloat16);
static_assert(int(Reduction::Sum) == ncclSum && int(Reduction::Prod) == ncclProd && int(Reduction::Max) == ncclMax &&
              int(Reduction::Min) == ncclMin);
static_assert(noColor == NCCL_SPLIT_NOCOLOR);
#define MSC_SAME_PLACE(field) static_assert(offsetof(Config, field) == offsetof(ncclConfig_t, field))
MSC_SAME_PLACE(size);
MSC_SAME_PLACE(magic);
MSC_SAME_PLACE(version);
MSC_SAME_PLACE(blocking);
MSC_SAME_PLACE(netName);
MSC_SAME_PLACE(splitShare);

/// Functions have as many parameters, and of the same sizes.
template <typename Function> struct Sizes;
template <typename Result, typename... Parameters> struct Sizes<Result (*)(Parameters...)> {
  static constexpr size_t result = sizeof(Result);
  static std::vector<size_t> list() { return {sizeof(Parameters)...}; }
};

TEST(NcclTable, FunctionsAreThoseOfTheHeader) {
#define MSC_COMPARE(name, parameters) EXPECT_EQ(Sizes<decltype(Table::name)>::list(), Sizes<decltype(&::name)>::list()) << #name;
  MSC_NCCL_FUNCTIONS(MSC_COMPARE)
  ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.blocking, theirs.blocking);
  EXPECT_EQ(ours.splitShare, theirs.splitShare);
  EXPECT_LE(ours.version, static_cast<unsigned>(NCCL_VERSION_CODE));
  EXPECT_LE(ours.size, theirs.size);
}
#endif

TEST(NcclTable, SaysWhatIsMissing) {
  auto none = loadTable("libmsc-no-such-nccl.so.2");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ExitCode::NoResource);
  EXPECT_EQ(none.error().message.rfind("NCCL is missing: libmsc-no-such-nccl.so.2", 0), 0u) << none.error().message;
  EXPECT_EQ(none.error().help, "install NCCL 2.22 or later, put its folder into LD_LIBRARY_PATH, or let collectives go through "
                               "the host with --collectives host");
  auto partial = loadTable(MSC_Partial);
  ASSERT_FALSE(partial);
  EXPECT_EQ(partial.error().message, MSC_Partial " has no function 'ncclCommInitRankConfig': it is too old");
  auto old = loadTable(MSC_Old);
  ASSERT_TRUE(old);
  auto transport = makeTransport(*old);
  ASSERT_FALSE(transport);
  EXPECT_EQ(transport.error().code, ExitCode::NoResource);
  EXPECT_EQ(transport.error().message, "NCCL 2.18.5 is too old");
}

TEST(NcclTable, TheInstalledLibraryTakesOurConfiguration) {
  auto table = loadTable();
  if (!table)
    GTEST_SKIP() << table.error().message;
  auto transport = makeTransport(*table);
  ASSERT_TRUE(transport) << transport.error().message;
  EXPECT_EQ((*transport)->name().rfind("NCCL 2.", 0), 0u) << (*transport)->name();
  UniqueId id;
  ASSERT_EQ(table->ncclGetUniqueId(&id), Code::Success);
  EXPECT_STRNE(table->ncclGetErrorString(Code::RemoteError), "");
  // A configuration that is none is refused before NCCL looks for a GPU.
  Config wrong;
  wrong.blocking = 0;
  wrong.magic = 1;
  Handle handle = nullptr;
  Code code = table->ncclCommInitRankConfig(&handle, 1, id, 0, &wrong);
  EXPECT_TRUE(code == Code::InvalidArgument || code == Code::UnhandledCudaError) << static_cast<int>(code);
}

} // namespace
