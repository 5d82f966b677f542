// Syntax tree to text. What it prints reads back as an equal tree.
#pragma once

#include "frontend/Ast.h"

#include "llvm/Support/raw_ostream.h"

namespace msc::frontend {

void print(const ast::File &file, llvm::raw_ostream &os);
void print(const ast::Expr &expr, llvm::raw_ostream &os);
std::string toText(const ast::File &file);
std::string toText(const ast::Expr &expr);

} // namespace msc::frontend
