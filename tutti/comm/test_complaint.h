#pragma once

#include <string>

#include "tutti/comm/exception.h"

namespace tutti {

/// What a call complains of.
template <class Function>
std::string complaint(Function&& function) {
  try {
    function();
    return "no complaint";
  } catch (const Exception& exception) {
    return exception.what();
  }
}

}  // namespace tutti
