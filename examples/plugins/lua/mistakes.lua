-- Makes the mistake that the object names, and has no function for scores although its manifest answers them.
function InterpretHealth(observedObj)
  local mistake = type(observedObj.spec) == "table" and observedObj.spec.mistake or nil
  if mistake == "exception" then
    return observedObj.status.readyReplicas > 0
  elseif mistake == "wrong type" then
    return { health = true, reason = 7 }
  elseif mistake == "endless loop" then
    while true do
    end
  elseif mistake == "memory" then
    local kept = "0123456789"
    while true do
      kept = kept .. kept
    end
  elseif mistake == "exit" then
    error("the list of 3 replicas is not sorted")
  end
  return { health = "Unknown", reason = "NoMistake" }
end
