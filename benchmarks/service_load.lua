-- Decide and reward by turns: a ticket that was answered is rewarded next. One state per thread of wrk.
-- Arguments: API key, experiment, then `context` and its JSON, or `person` for a new name each time.
local key, path, context, people = nil, nil, "", false
local tickets, first, last, counter = {}, 1, 0, 0

function init(arguments)
  key, path = arguments[1], "/v1/experiments/" .. arguments[2] .. "/decide"
  if arguments[3] == "context" then context = ',"context":' .. arguments[4] end
  people = arguments[3] == "person"
  math.randomseed(os.time() + tonumber(tostring({}):sub(8), 16) % 1000000)
  prefix = tostring(math.random(1, 1e9)) .. "-"
end

function request()
  local headers = { ["Authorization"] = "Bearer " .. key, ["Content-Type"] = "application/json" }
  if first <= last then
    local ticket = tickets[first]
    tickets[first], first = nil, first + 1
    local body = '{"ticket":"' .. ticket .. '","reward":' .. math.random(0, 1) .. "}"
    return wrk.format("POST", "/v1/reward", headers, body)
  end
  counter = counter + 1
  local name = prefix .. counter
  local person = people and ',"person":"' .. name .. '"' or ""
  return wrk.format("POST", path, headers, '{"request":"' .. name .. '"' .. person .. context .. "}")
end

function response(status, headers, body)
  local ticket = body:match('"ticket":"([^"]+)"')
  if ticket then
    last = last + 1
    tickets[last] = ticket
  end
end
