#include "runtime/comm/nccl/Plugin.h"

#include "runtime/comm/nccl/Transport.h"

int mscCommNcclTransport(int version, MscNcclTransport *result) {
  using namespace msc::comm;
  if (version != MSC_NCCL_PLUGIN_VERSION)
    return MSC_NCCL_PLUGIN_VERSION;
  msc::Result<nccl::Table> table = nccl::loadTable();
  if (!table) {
    result->error = table.error();
    return version;
  }
  auto transport = nccl::makeTransport(*table);
  if (transport)
    result->transport = transport->release();
  else
    result->error = transport.error();
  return version;
}
