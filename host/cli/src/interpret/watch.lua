do
  local function copy(value)
    if type(value) ~= "table" then
      return value
    end
    local new = {}
    for key, member in pairs(value) do
      new[key] = copy(member)
    end
    return new
  end

  -- The first place at which two values differ, nil if they are the same.
  local function difference(before, after, path)
    if type(before) ~= "table" or type(after) ~= "table" then
      if before == after then
        return nil
      end
      return path
    end
    for key, member in pairs(before) do
      local found = difference(member, after[key], path .. "." .. tostring(key))
      if found ~= nil then
        return found
      end
    end
    for key in pairs(after) do
      if before[key] == nil then
        return path .. "." .. tostring(key)
      end
    end
    return nil
  end

  -- The results as they are, unless there are none or what was given is another now.
  local function checked(before, given, ...)
    local found = difference(before, given, "argument ARGUMENT")
    if found ~= nil then
      error("FUNCTION modifies its input, at " .. found, 0)
    end
    if NEEDED and select("#", ...) == 0 then
      error("FUNCTION returns nothing", 0)
    end
    return ...
  end

  local watched = FUNCTION
  FUNCTION = function(...)
    local given = ({...})[ARGUMENT]
    return checked(copy(given), given, watched(...))
  end
end
