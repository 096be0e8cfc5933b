require 'logger'
require 'rails'
require 'active_record/railtie'

class Shop < Rails::Application
  config.eager_load = false
end
