//===- CommunicationInterface.td - tensors of all ranks become others ------===//

#ifndef MSC_DIALECTS_NET_COMMUNICATION_INTERFACE
#define MSC_DIALECTS_NET_COMMUNICATION_INTERFACE

include "mlir/IR/OpBase.td"

def Net_CommunicationInterface : OpInterface<"CommunicationInterface"> {
  let cppNamespace = "::msc::net";
  let description = [{
    An operator of hybrid_parallel mode, in which every rank has tensors of its own. It is `Expanded`: the partition puts
    moves of what all ranks hold together in its place.
  }];
  let methods = [
    InterfaceMethod<[{
        How the operands of all ranks become the result with this number. An operator without operands starts from the
        numbers of all ranks.
      }],
      "::msc::net::Communication", "communication", (ins "unsigned":$result)>,
  ];
}

#endif // MSC_DIALECTS_NET_COMMUNICATION_INTERFACE
